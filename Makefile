# make            build the program
# make demo       see a whole loop in a scratch repository
# make test       run everything that .ci/run runs
# make install    install under PREFIX (DESTDIR is honoured)

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo

bindir  = $(DESTDIR)$(PREFIX)/bin
mandir  = $(DESTDIR)$(PREFIX)/share/man
bashdir = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zshdir  = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fishdir = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

target  = $(or $(CARGO_TARGET_DIR),target)
program = $(target)/release/git-devlyn

.PHONY: build test demo install uninstall man completions replay soak fuzz bench clean
.DEFAULT_GOAL := build

build:
	$(CARGO) build --release --locked --target-dir '$(target)'

# Only where it is older than its sources, so that `sudo make install` behind `make` compiles nothing.
$(program): Cargo.toml Cargo.lock $(shell find src hooks -type f)
	$(CARGO) build --release --locked --target-dir '$(target)'
	touch '$@'

test:
	./.ci/run

demo: build
	GIT_DEVLYN='$(abspath $(program))' examples/quickstart/demo.sh

install: $(program)
	install -d '$(bindir)' '$(mandir)/man1' '$(mandir)/man5' '$(mandir)/man7' '$(bashdir)' '$(zshdir)' '$(fishdir)'
	install -m 755 '$(program)' '$(bindir)/git-devlyn'
	install -m 644 man/*.1 '$(mandir)/man1'
	install -m 644 man/*.5 '$(mandir)/man5'
	install -m 644 man/*.7 '$(mandir)/man7'
	install -m 644 completions/bash/git-devlyn '$(bashdir)'
	install -m 644 completions/zsh/_git-devlyn '$(zshdir)'
	install -m 644 completions/fish/git-devlyn.fish '$(fishdir)'

uninstall:
	rm -f '$(bindir)/git-devlyn' '$(bashdir)/git-devlyn' '$(zshdir)/_git-devlyn' '$(fishdir)/git-devlyn.fish'
	cd man && for page in *.[157]; do rm -f "$(mandir)/man$${page##*.}/$$page"; done

# Both come from src/cli/args.rs; a test fails while they are stale.
man:
	$(CARGO) run --quiet --locked -- generate man man

completions:
	$(CARGO) run --quiet --locked -- generate completions completions

# A published crate at two versions, worked from the one to the other. Asks the crate registry.
replay: build
	GIT_DEVLYN='$(abspath $(program))' benches/replay.sh

# Hours instead of minutes: every point of the crash matrix, thousands of walks.
soak:
	DEVLYN_SOAK=1 $(CARGO) test --release --locked --no-fail-fast -- --include-ignored

# Every parser of what a stranger writes, FUZZ_SECONDS each, one after the other; FUZZ_TARGETS chooses some of them.
# Needs a nightly toolchain, cargo-fuzz and a C++ compiler. What is found on the way stays below fuzz/target. Without the
# address sanitizer: there is no unsafe code here, and it costs much of the speed.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))

fuzz:
	@$(CARGO) +nightly --version || { echo 'make fuzz: install a nightly toolchain: rustup toolchain install nightly'; exit 1; }
	@$(CARGO) +nightly fuzz --version || { echo 'make fuzz: install cargo-fuzz: cargo install cargo-fuzz'; exit 1; }
	set -e; for target in $(FUZZ_TARGETS); do \
	    mkdir -p "fuzz/target/corpus/$$target"; \
	    $(CARGO) +nightly fuzz run --sanitizer none "$$target" "fuzz/target/corpus/$$target" "fuzz/corpus/$$target" -- \
	        -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=4096 \
	        $$(ls "fuzz/$$target.dict" 2>/dev/null | sed 's/^/-dict=/'); \
	done

# Needs hyperfine and python3.
bench: build
	GIT_DEVLYN='$(abspath $(program))' benches/compare.sh
	GIT_DEVLYN='$(abspath $(program))' benches/hooks.sh

clean:
	$(CARGO) clean --target-dir '$(target)'
