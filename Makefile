# Every command of this repository; `make` or `make help` lists them.

CARGO ?= cargo
SECONDS_EACH ?= 60
# Cargo's folder for what it builds, and the programs made there.
BUILD := $(abspath $(or $(CARGO_TARGET_DIR),target))
FAIRWAY := $(BUILD)/debug/fairway
# What --engine=nginx needs: only what Debian ships.
MODULES := lua headers-more-filter brotli-filter geoip2 modsecurity
NGINX := nginx $(MODULES:%=libnginx-mod-http-%) lua-resty-core lua-cjson modsecurity-crs
# A browser for the tests of the page, and what checks it for people who see or move little.
BROWSER := chromium chromedriver npm-axe-core@4.14.1
# What a release is made with: the cross compiler and its emulator, what unpacks Debian, and what runs the images.
RELEASE := cargo cc jq openssl curl ip setcap mmdebstrap podman runc aarch64-linux-gnu-gcc qemu-aarch64 rust-aarch64
# Tools that scripts/need fetched come first; the last ones are where rustup, Go
# and Debian put theirs, for shells that do not look there.
export PATH := $(BUILD)/tools/go/bin:$(BUILD)/tools/bin:$(PATH):$(HOME)/.cargo/bin:/usr/local/go/bin:/usr/sbin:/sbin

# make itself cannot tell a space in a path from one between two.
ifneq ($(words $(BUILD)),1)
$(error The path $(CURDIR) has a space in it: move the work tree to one without)
endif

.DEFAULT_GOAL := help
.PHONY: help run build install release test lint fmt docs exchanges smuggling floods rollout faults takeover versions ecosystem conformance bench bench-cluster bench-admission bench-instructions soak fuzz unsafe train

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Serve examples/demo and print the curl lines to try (PORT=, TLS_PORT=: other than free ones)
	@scripts/need cargo cc
	@$(CARGO) build --package fairway --package demo
	@PORT=$(PORT) TLS_PORT=$(TLS_PORT) $(BUILD)/debug/demo

build: ## Build the program as it is shipped; prints where it is (about 18 CPU-minutes, 4 GB of memory, 2 GB of disk)
	@scripts/need cargo cc
	@scripts/released

install: build ## Put it into PREFIX=/usr/local, and beside it kubectl-fairway, which makes it `kubectl fairway`
	install -D -m 755 $(BUILD)/release/fairway $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/fairway
	ln -sf fairway $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/kubectl-fairway

release: ## Programs, images, chart, bill of materials, provenance, checksums [KEY=private.pem PROFILE=dev OUT=folder BUILDER=uri]
	@scripts/need $(RELEASE)
	@NGINX="$(NGINX)" KEY="$(KEY)" PROFILE="$(PROFILE)" OUT="$(OUT)" BUILDER="$(BUILDER)" nice scripts/release/all

test: ## Everything that has to be green: lint, unit, case, socket, cluster and documentation tests
	@scripts/need cargo cc pkg-config libssl-dev openssl curl go ip unshare setcap jq haproxy $(NGINX) $(BROWSER)
	@$(MAKE) --no-print-directory lint
	@scripts/suite

lint: ## Formatting, clippy, luacheck, and what dependencies may come in
	@scripts/need cargo cc cargo-deny luacheck
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features proxy/fuzzing -- -D warnings
	luacheck --quiet --config crates/nginx/.luacheckrc crates/nginx/lua crates/nginx/tests/suite/lua
	scripts/deny

fmt: ## Format all code
	$(CARGO) fmt --all

docs: ## Write the pages that are generated from code, and the API documentation
	UPDATE=1 $(CARGO) test --quiet -p translate
	UPDATE=1 $(CARGO) test --quiet -p snippet documentation
	UPDATE=1 $(CARGO) test --quiet -p exposition documentation
	UPDATE=1 $(CARGO) test --quiet --test deploy values
	$(CARGO) doc --workspace --no-deps

exchanges: ## Replay recorded exchanges: DIR=path [FAMILY=name] [ENGINE=native|nginx]
	@$(CARGO) build --quiet --bin fairway
	@$(CARGO) run --quiet -p testkit --bin exchanges -- \
	  $(or $(DIR),tests/exchanges) --binary $(FAIRWAY) --out $(BUILD) \
	  $(if $(FAMILY),--family $(FAMILY)) $(if $(ENGINE),--engine $(ENGINE))

smuggling: ## Send every hostile head and framing of a table: [FILE=table.csv]
	@$(CARGO) build --quiet --bin fairway
	@$(CARGO) run --quiet -p hostile --bin smuggling -- --binary $(FAIRWAY) $(FILE)

floods: ## Send floods of HTTP/2 frames, slow headers, bodies and readers [ONLY="HTTP/2 answers unread"]
	@$(CARGO) build --quiet --bin fairway
	@$(CARGO) run --quiet -p hostile --bin floods -- --binary $(FAIRWAY) $(if $(ONLY),--only "$(ONLY)")

faults: ## Inject the faults of tests/faults/table.tsv and print what became of each [ONLY=DP]
	@scripts/need cargo cc go ip unshare
	@$(CARGO) build --quiet --bin fairway
	@$(CARGO) run --quiet -p hostile --bin faults -- --binary $(FAIRWAY) $(if $(ONLY),--only $(ONLY))

rollout: ## Roll Pods and Fairway itself under load: no request may fail [ROLLS=10]
	@scripts/need cargo cc go ip unshare
	@FAIRWAY_SHOW=1 FAIRWAY_ROLLS=$(or $(ROLLS),10) $(CARGO) test --quiet -p fairway --test cluster zero_loss -- --nocapture --test-threads=1

takeover: ## Take over from ingress-nginx, upgrade, and go back, again and again under load [REQUESTS=1000000]
	@scripts/need cargo cc go ip unshare nginx
	@FAIRWAY_SHOW=1 FAIRWAY_TEST_SECONDS=7200 FAIRWAY_REQUESTS=$(or $(REQUESTS),1000000) $(CARGO) test --quiet -p fairway --test deploy takeover -- --nocapture --test-threads=1

versions: ## Ask another version and this one the same, by `fairway compare`: OLD=path of the other program
	@scripts/need cargo cc
	@test -x "$(OLD)" || { echo "say which program: make versions OLD=path"; exit 1; }
	@FAIRWAY_OLD=$(abspath $(OLD)) $(CARGO) test --quiet -p fairway --test suite two_versions

ecosystem: ## Run Fairway beside programs of others, built from the Go module proxy: docs/ecosystem.md
	@scripts/need cargo cc go ip unshare nginx
	@$(CARGO) test --quiet -p fairway --test cluster records -- --ignored --test-threads=1
	@$(CARGO) test --quiet -p fairway --test cluster login -- --ignored --test-threads=1
	@$(CARGO) test --quiet -p fairway --test cluster monitoring -- --ignored --test-threads=1
	@$(CARGO) test --quiet -p fairway --test cluster acme -- --ignored --test-threads=1
	@$(CARGO) test --quiet -p fairway --test cluster canaries -- --ignored --test-threads=1
	@$(CARGO) test --quiet -p fairway --test deploy external_dns -- --ignored --test-threads=1

conformance: ## Run the Gateway API's conformance suite, or a few tests of it: [RUN=name,name]
	@scripts/need cargo cc go ip unshare go1.27
	@$(CARGO) build --quiet --bin fairway
	@$(CARGO) build --quiet --package testkit --bin conformance
	@scripts/conformance $(FAIRWAY) $(RUN)

bench: ## Measure against nginx and HAProxy; writes docs/benchmarks.json and docs/benchmarks.md
	@scripts/need cargo cc haproxy $(NGINX)
	@scripts/released
	@$(CARGO) run --quiet --release -p bench --bin bench

train: ## Learn anew where requests go, for builds as they are shipped; writes profile/fairway.profdata
	@scripts/need cargo cc
	@scripts/train

bench-cluster: ## Measure the control side against a real API server; adds to what make bench wrote
	@scripts/need cargo cc go ip unshare
	@scripts/released
	@$(CARGO) build --quiet --release -p bench
	@$(CARGO) run --quiet -p testkit --example cluster -- $(BUILD)/release/bench cluster
	@$(CARGO) run --quiet -p testkit --example cluster -- --gateway-api $(BUILD)/release/bench cluster --routes

bench-admission: ## Measure reviews of the webhook: 50 at a time, 5,000 Ingresses present
	@scripts/need cargo cc
	@$(CARGO) run --quiet --release -p controller --example reviews

bench-instructions: ## Count instructions per request, under valgrind
	@scripts/need cargo cc valgrind
	@scripts/released
	@$(CARGO) run --quiet --release -p bench --bin bench -- instructions

soak: ## Keep Fairway busy with all kinds of traffic and changes; fails when memory, descriptors or threads grow [SECONDS=3600]
	@scripts/need cargo cc go ip unshare $(NGINX)
	@$(CARGO) build --quiet --bin fairway
	@$(CARGO) run --quiet -p bench --bin bench -- soak --for $(or $(SECONDS),3600) --binary $(FAIRWAY) --folder $(BUILD)/soak
	@FAIRWAY_CHANGES=$(or $(CHANGES),1000) $(CARGO) test --quiet -p nginx changes_of_all_kinds -- --nocapture
	@FAIRWAY_GATEWAYS=$(or $(GATEWAYS),1000) $(CARGO) test --quiet --test cluster many_gateways -- --nocapture
	@FAIRWAY_ROUTES=$(or $(ROUTES),1000) $(CARGO) test --quiet --test cluster storms -- --nocapture

unsafe: ## Count the unsafe code of all dependencies into docs/unsafe.md
	@scripts/need cargo
	@$(CARGO) fetch --quiet
	@scripts/unsafe

fuzz: ## Run every fuzz target for SECONDS_EACH=60 seconds, or one: TARGET=name
	@scripts/need cargo cc cargo-fuzz
	@for target in $(or $(TARGET),$$(cd fuzz && cargo fuzz list)); do \
	  mkdir -p fuzz/corpus/$$target; \
	  (cd fuzz && cargo fuzz run -s none $$target corpus/$$target seeds/$$target -- \
	    -max_total_time=$(SECONDS_EACH) -max_len=1024) || exit 1; \
	done
