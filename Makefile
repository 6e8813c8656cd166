# make demo    the main job on a real data set, checked, with a table and a plot
# make test    the test suite
# make lint    ruff and mypy
# make test-swiftshader, make test-opengl    the suite on two other software devices
# make test-default-limits    the suite on a device with no more than WebGPU's default limits
# make test-mesa25    a newer lavapipe: dmlgpu verify, and the tests that a compiler or driver can change
# make test-browser    the conformance cases in a page of headless Chromium, and the page of 'make page'
# make page    "Same bits on your GPU?": one HTML file in build/page that checks a GPU in the browser
# make docs    the documentation as a site, in build/docs
# make test-dawn-mesa25    the conformance cases through Dawn on the newer lavapipe, which keeps subnormal numbers
# make matrix    the conformance cases on three software devices and through Dawn: all must have the same digests
# make fuzz    random programs and files, guided by the lines they reach; what is new goes into tests/data/fuzz
# make mutation    alter every operator, stride, barrier and guard of the shaders in turn: what the suite notices (long)
# make test-faults    the faults of calls, devices, files, streams and signals at every point, of which the suite has a sample
# make test-cuttings N=1000 FIRST=0    N random cuttings of slices from number FIRST on, by dmlgpu.Scan and Dask, on each
#     device of 'make matrix' (long)
# make test-tint    every shader and a sample of the cases through Tint, the other compiler of WGSL
# make gpu-compilers    every pipeline of GPUs through AMD's, NVIDIA's and Direct3D 12's compilers; no GPU is needed (long)
# make gpu-report    what a GPU gets right and how fast it is, in under eight minutes: two files to send, in build/gpu-report
#
# Each does its own set-up first (scripts/set_up.py) and can be run again and again. PYTHON= chooses the Python that the
# environment .venv is made with, DMLGPU_ADAPTER= the device, PYTEST_ARGS= adds to pytest's arguments, and VERIFY_ARGS= to
# those of dmlgpu verify in the matrix, with Mesa 25 and in the browser.

PYTHON ?= python3
PYTEST_ARGS ?=
VERIFY_ARGS ?=
MUTATION_ARGS ?=
GPU_COMPILERS_ARGS ?=
GPU_REPORT_ARGS ?=
FUZZ_ARGS ?=
VENV_BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

# What depends on a driver's compiler, scheduling and objects; the kernels have dmlgpu verify besides.
MESA25_TESTS := tests/test_scan_kernels.py::test_windows $(foreach name,exceptional device directml_execute,\
	tests/test_$(name).py)
# What this machine's user has measured by `dmlgpu tune` changes no test.
export DMLGPU_TUNING := off

ON_SWIFTSHADER := DMLGPU_ADAPTER=SwiftShader VK_DRIVER_FILES=$(CURDIR)/.cache/swiftshader/vk_swiftshader_icd.json
ON_MESA25 := DMLGPU_ADAPTER=Vulkan VK_DRIVER_FILES=$(CURDIR)/.cache/mesa25/lavapipe.json \
	LD_LIBRARY_PATH=$(CURDIR)/.cache/mesa25/usr/lib/$(shell uname -m)-linux-gnu

.PHONY: demo test test-swiftshader test-opengl test-default-limits test-tint test-faults test-cuttings test-mesa25 \
	verify-mesa25 test-browser page docs test-dawn-mesa25 matrix fuzz mutation gpu-compilers gpu-report lint setup-demo setup-test swiftshader mesa25 chromium clean
.NOTPARALLEL:

demo: setup-demo
	$(VENV_BIN)/python examples/demo.py

test: setup-test
	$(VENV_BIN)/python -m pytest $(PYTEST_ARGS)

test-swiftshader test-tint: export VK_DRIVER_FILES := $(CURDIR)/.cache/swiftshader/vk_swiftshader_icd.json
test-swiftshader test-tint: export DMLGPU_ADAPTER := SwiftShader
test-swiftshader: swiftshader test

test-tint: swiftshader setup-test
	$(VENV_BIN)/python -m pytest -m tint $(PYTEST_ARGS)

test-opengl: export DMLGPU_ADAPTER := OpenGL
test-opengl: test

test-default-limits: export DMLGPU_TEST_LIMITS := default
test-default-limits: test

FAULT_TESTS := tests/test_runtime_faults.py tests/test_cli_faults.py tests/test_cli_crashes.py tests/test_cli_streams.py
test-faults: export DMLGPU_TEST_FAULTS := all
test-faults: setup-test
	$(VENV_BIN)/python -m pytest $(FAULT_TESTS) $(PYTEST_ARGS)

CUTTING_TESTS := tests/test_pieces.py tests/test_dask.py -k "any_cutting or any_chunks"
N ?= 1000
FIRST ?= 0
test-cuttings: export DMLGPU_FIRST_DRAW := $(FIRST)
test-cuttings: export DMLGPU_PIECES_DRAWS := $(N)
test-cuttings: export DMLGPU_DASK_DRAWS := $(N)
test-cuttings: swiftshader setup-test
	@DMLGPU_ADAPTER=OpenGL $(PYTHON) scripts/set_up.py test
	$(VENV_BIN)/python -m pytest $(CUTTING_TESTS) $(PYTEST_ARGS)
	DMLGPU_ADAPTER=OpenGL $(VENV_BIN)/python -m pytest $(CUTTING_TESTS) $(PYTEST_ARGS)
	$(ON_SWIFTSHADER) $(VENV_BIN)/python -m pytest $(CUTTING_TESTS) $(PYTEST_ARGS)
	$(ON_SWIFTSHADER) $(VENV_BIN)/python scripts/on_dawn.py pytest $(CUTTING_TESTS) $(PYTEST_ARGS)

test-mesa25: verify-mesa25
	$(ON_MESA25) $(VENV_BIN)/python -m pytest $(MESA25_TESTS) $(PYTEST_ARGS)

verify-mesa25: setup-test mesa25
	$(ON_MESA25) $(VENV_BIN)/python -m dmlgpu verify --every-kernel $(VERIFY_ARGS)

test-browser: setup-test chromium
	$(VENV_BIN)/python scripts/in_browser.py $(VERIFY_ARGS)
	$(VENV_BIN)/python -m pytest -m browser $(PYTEST_ARGS)

page: setup-test
	$(VENV_BIN)/python scripts/gpu_page.py build/page

docs: setup-test
	$(VENV_BIN)/python -m pip install --quiet --group docs
	$(VENV_BIN)/python scripts/docs_site.py build/docs

test-dawn-mesa25: setup-test mesa25
	$(ON_MESA25) $(VENV_BIN)/python scripts/on_dawn.py dmlgpu verify --every-kernel --jobs 1 $(VERIFY_ARGS)

matrix: swiftshader setup-test
	@DMLGPU_ADAPTER=OpenGL $(PYTHON) scripts/set_up.py test
	$(VENV_BIN)/python scripts/matrix.py .cache/matrix $(VERIFY_ARGS)

fuzz: setup-test
	$(VENV_BIN)/python -m tests.fuzz $(FUZZ_ARGS)

mutation: export DMLGPU_ADAPTER := Vulkan
mutation: setup-test
	$(VENV_BIN)/python -m tests.mutation $(MUTATION_ARGS)

gpu-compilers: setup-test
	@$(PYTHON) scripts/compilers.py $(patsubst --%,%,$(filter --fxc,$(GPU_COMPILERS_ARGS)))
	$(VENV_BIN)/python -m tests.compilers $(GPU_COMPILERS_ARGS)

gpu-report: setup-demo
	$(VENV_BIN)/python -m benchmarks.gpu_report $(GPU_REPORT_ARGS)

lint: setup-test
	$(VENV_BIN)/ruff check
	$(VENV_BIN)/ruff format --check
	$(VENV_BIN)/mypy

setup-demo setup-test: setup-%:
	@$(PYTHON) scripts/set_up.py $*

swiftshader mesa25 chromium:
	@$(PYTHON) scripts/$@.py

clean:
	rm -rf .venv .cache build dist examples/output
