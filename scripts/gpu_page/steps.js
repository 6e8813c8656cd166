// Draws Hillis and Steele's scan of 16 numbers, step by step.

import { COMBINE, hillisSteele } from "./order.js";

const COUNT = 16;
const STRIDES = [1, 2, 4, 8];
const WIDTH = 50;
const HEIGHT = 66;
const LEFT = 172;
const SECONDS = 1.4;

function element(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function short(value) {
  const text = String(value);
  return text.length <= 6 ? text : value.toPrecision(3).replace("e+", "e");
}

export class Steps {
  constructor() {
    this.drawing = document.getElementById("drawing");
    this.text = document.getElementById("step-text");
    this.playing = document.getElementById("play");
    this.shown = 0;
    document.getElementById("step").addEventListener("click", () => this.show(this.shown === 4 ? 0 : this.shown + 1));
    document.getElementById("back").addEventListener("click", () => this.show(Math.max(0, this.shown - 1)));
    this.playing.addEventListener("click", () => this.play(this.timer === undefined));
  }

  // Takes the first 16 numbers of a row, with the operator's identity after them where there are fewer.
  take(row, type, operator) {
    this.operator = operator === "product" ? "product" : "sum";
    const identity = this.operator === "sum" ? 0 : 1;
    const values = Array.from({ length: COUNT }, (_, i) => row[i] ?? identity);
    this.levels = hillisSteele(values, COMBINE[type][this.operator]);
    this.show(0);
  }

  play(on) {
    clearInterval(this.timer);
    this.timer = on ? setInterval(() => this.show(this.shown === 4 ? 0 : this.shown + 1), 1000 * SECONDS) : undefined;
    this.playing.setAttribute("aria-pressed", String(on));
    this.playing.textContent = on ? "Pause" : "Play";
  }

  show(step) {
    this.shown = step;
    this.drawing.replaceChildren();
    for (let level = 0; level <= step; level += 1) this.draw(level, level === step && step > 0);
    const word = this.operator === "sum" ? "adds" : "multiplies by";
    const values = this.levels[step].map(short).join(", ");
    const what =
      step === 0 ? "Start" : `Step ${step} of 4, stride ${STRIDES[step - 1]}: each number ${word} the one ${STRIDES[step - 1]} to its left`;
    this.text.textContent = `${what}. Now: ${values}.`;
  }

  draw(level, isNow) {
    const stride = STRIDES[level - 1];
    const group = element("g", { class: isNow ? "now" : "" }, this.drawing);
    const y = 30 + level * HEIGHT;
    element("text", { class: "level", x: 4, y: y + 5 }, group, level === 0 ? "16 totals" : `after stride ${stride}`);
    for (let i = 0; i < COUNT; i += 1) {
      const x = LEFT - 40 + i * WIDTH + WIDTH / 2;
      const isChanged = level > 0 && i >= stride;
      if (level > 0) {
        const kind = { class: isNow && isChanged ? "taken" : "" };
        element("line", { x1: x, y1: y - HEIGHT + 15, x2: x, y2: y - 15, ...kind }, group);
        if (isChanged) element("line", { x1: x - stride * WIDTH, y1: y - HEIGHT + 15, x2: x, y2: y - 15, ...kind }, group);
      }
      const cell = element("g", { class: isNow && isChanged ? "changed" : "" }, group);
      element("rect", { x: x - 23, y: y - 15, width: 46, height: 30, rx: 5 }, cell);
      element("text", { x, y: y + 5 }, cell, short(this.levels[level][i]));
    }
  }
}
