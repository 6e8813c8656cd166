"""Fuzzing: random inputs, guided by which lines they reach, and the corpus of those that reached something new.

``make fuzz`` runs every target of `targets` for a while; the suite replays their corpora and draws a few inputs more.
"""
