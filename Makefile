# Every target installs first what is missing; make and Python 3.10 or newer are taken for granted.
.DEFAULT_GOAL := help
.PHONY: help demo docs test test-fast build bench experiments format golden tidy fuzz setup clean distclean

help:       ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo:       ## build, then show what gossip does on slow links
	@tools/demo.sh

test:       ## every check: tests, sanitizers, structure, lint
	@tools/test.sh

test-fast:  ## the tests labelled fast, release build only
	@tools/test.sh --fast

build:      ## build/bin/gossamer and its companions
	@tools/build.sh

docs:       ## these pages as a site with a search, in build/site; needs no network to read
	@tools/docs.sh

bench:      ## quick benchmarks, results in build/bench/*.json
	@tools/bench.sh

experiments: ## compare methods in training; takes hours, goes on where it stopped
	@tools/experiments.sh

format:     ## format C++ and Python in place
	@tools/format.sh

golden:     ## renew the golden files, the stub and the API page; read the diff
	@tools/golden.sh

tidy:       ## clang-tidy, where it is installed
	@tools/tidy.sh

fuzz:       ## a minute of fuzzing for each reader; needs clang
	@tools/fuzz.sh

setup:      ## system packages and .venv, nothing else
	@tools/setup.sh

clean:      ## remove what was built
	@rm -rf build .cache

distclean:  ## and .venv
	@rm -rf build .cache .venv
