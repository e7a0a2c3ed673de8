# agentbox: one non-recursive Makefile.  `make help` lists the targets.
#
# The folder graph below is data: it decides include checks (make lint), what
# the unit tests of a folder may link, and what each program links.

MODE ?= release
# libFuzzer comes with clang
ifeq ($(origin CC),default)
CC := $(if $(filter fuzz,$(MODE)),clang,gcc)
endif
MUSL_CC ?= musl-gcc
PREFIX ?= /usr/local
DESTDIR ?=
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

comma := ,
space := $(subst ,, )
B := build/$(MODE)
BIN := $(B)/bin

# ---- the folder graph: DEPS_x = what x may include and link ----
FOLDERS := base proto drivers policy jail egress listener supervisor client abctl
DEPS_base :=
DEPS_drivers := base
DEPS_policy := drivers base
DEPS_proto := policy base
DEPS_jail := proto policy base
DEPS_egress := proto policy base
DEPS_listener := proto policy base
DEPS_supervisor := proto policy drivers base
DEPS_client := proto base
DEPS_abctl := client proto base

# ---- programs: main file, libraries (the link line shows the privilege) ----
PROGRAMS := agentboxd agentbox-supervisor agentbox-egress agentbox-listener agentbox-policyc agentbox-authority abctl
MAIN_agentboxd := jail/agentboxd.c
LIBS_agentboxd := -lnl-route-3 -lnl-3
# Inside supervisor/ a file includes only what stands after it here: what clients ask, what a run is
# and does, what is kept, what all stand on.
ORDER_supervisor := main orders filter arguments \
	api_system api_backup api_drain api_policies api_harnesses api_agents api_sessions api_prewarm api_runs api_artifacts api_raw api_talk api_jails api_jail_list api_egress api_webhooks api_keys api_audit api_snapshots api_ports api_files file_op file_list visit exec_wait openapi metrics \
	routes proxy proxy_head stream page download range stdio_conn stdio_in stdio_private stdio shared_jail jailspec scope apikeys body api problem http_server http_conn http_answer http_request http_memory http_private http percent conns auth \
	prewarm ahead evict drain retention runs_show runs_artifacts runs_recover runs_adopt runs_steps_sum runs_approve runs_steps runs_queue runs runs_private \
	runner runner_start runner_work runner_again runner_verify runner_end runner_repo runner_retry runner_talk result params active attempts verify egress_totals enforce asks said veiled checkout changes \
	inbound sessions quota sched_turns sched_look sched_private share sched early seed jailed plan plan_env repo run keeper pump journal \
	webhooks_show webhooks_flight webhooks webhooks_private webhook_news traces trace_spans trace \
	uploads_show uploads_flight uploads uploads_private \
	resume transcript frames eventlog_cut eventlog_commit eventlog eventlog_private logline hub jails_news jails jails_private purses egress_feed egress_news \
	policies harnesses harness_json packs \
	store_write store_read store_copy store_objects store store_private store_sql db \
	artifacts syncs guard files relay audit media owner hash daemon space machine loop stats

MAIN_agentbox-supervisor := supervisor/main.c
LIBS_agentbox-supervisor := -luring -lsqlite3 -lcrypto -lcjson -lyaml
MAIN_agentbox-egress := egress/main.c
LIBS_agentbox-egress := -lcurl -lcares -lssl -lcrypto -lcjson
MAIN_agentbox-listener := listener/main.c
LIBS_agentbox-listener := -lssl -lcrypto -lcjson
MAIN_agentbox-authority := egress/authority.c
LIBS_agentbox-authority := -lcrypto
MAIN_agentbox-policyc := policy/policyc.c
LIBS_agentbox-policyc := -lyaml -lseccomp -lcjson
MAIN_abctl := abctl/abctl.c
LIBS_abctl := -lcjson -lssl -lcrypto

# Run inside jails: static, small, built with musl and never sanitized.
STATIC_PROGRAMS := agentbox-init agentbox-worker agentbox-acp agentbox-canary
SRCS_agentbox-init := jail/init.c proto/exec_unpack.c
SRCS_agentbox-worker := jail/worker.c
SRCS_agentbox-acp := $(wildcard jail/acp*.c) base/buf.c base/json_write.c base/mem.c base/scan.c base/utf8.c
SRCS_agentbox-canary := jail/canary.c jail/canary_self.c jail/canary_files.c

# Libraries a folder's unit tests may need.
LIBS_base := -lcjson -lssl -lcrypto
LIBS_policy := -lyaml -lseccomp
LIBS_jail := -lnl-route-3 -lnl-3
LIBS_listener := -lssl -lcrypto
LIBS_egress := -lcurl -lcares -lssl -lcrypto
LIBS_supervisor := -luring -lsqlite3 -lcrypto
LIBS_client := -lcjson -lssl -lcrypto

# ---- flags ----
cc-option = $(shell $(CC) -Werror $(1) -x c -c /dev/null -o /dev/null 2>/dev/null && echo $(1))

WARN := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wformat=2 -Wstrict-prototypes \
	-Wmissing-prototypes -Wundef -Wvla -Walloca -Wpointer-arith -Wcast-qual -Wwrite-strings \
	-Wswitch-enum -Wimplicit-fallthrough -Werror=return-type \
	-Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
	-Werror=int-conversion -Werror=format-security
HARDEN := -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -fPIE \
	-fno-strict-aliasing -fno-common $(call cc-option,-ftrivial-auto-var-init=zero) \
	$(call cc-option,-fstrict-flex-arrays=3)
LDHARDEN := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code -Wl,--as-needed
OPT_release := -O2 -g -D_FORTIFY_SOURCE=3
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -DSANITIZED
OPT_fuzz := -O1 -g -fsanitize=address,undefined,fuzzer-no-link \
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer -DSANITIZED
LD_asan := -fsanitize=address,undefined
LD_fuzz := -fsanitize=address,undefined

# What programs say to each other is in these; one file has the digest (proto/build.c).
SPOKEN := $(sort $(wildcard proto/*.h policy/*.h base/limits.h))
BUILD_ID := b$(shell cat $(SPOKEN) | sha256sum | cut -c1-16)

BASEFLAGS := -std=gnu17 -D_GNU_SOURCE -DBUILD_ID=$(BUILD_ID) -I. $(WARN)
ALL_CFLAGS = $(BASEFLAGS) $(HARDEN) $(OPT_$(MODE)) $(CFLAGS)
ALL_LDFLAGS = $(LDHARDEN) $(LD_$(MODE)) $(LDFLAGS)
STATIC_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) -O2 -g -fPIE -fstack-protector-strong \
	-fno-strict-aliasing -ffunction-sections -idirafter /usr/include \
	-idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

# musl-gcc of Debian takes -static-pie and links dynamically all the same, so the parts of a static
# position-independent program are named one by one.
STATIC_LINK = -static
ifeq ($(notdir $(MUSL_CC)),musl-gcc)
MUSL_LIB ?= $(firstword $(wildcard /usr/lib/*-linux-musl /usr/lib/musl/lib))
ifneq ($(wildcard $(MUSL_LIB)/rcrt1.o),)
STATIC_LINK = -static -nostartfiles -Wl,-pie,--no-dynamic-linker,-z,relro,-z,now,-z,noexecstack \
	$(MUSL_LIB)/rcrt1.o $(MUSL_LIB)/crti.o $(MUSL_LIB)/crtn.o
endif
endif

# ---- objects ----
MAINS := $(foreach p,$(PROGRAMS),$(MAIN_$(p)))
STATIC_ONLY := jail/init.c jail/worker.c $(wildcard jail/acp*.c) $(SRCS_agentbox-canary)
SOURCES := $(filter-out $(STATIC_ONLY),$(wildcard $(addsuffix /*.c,$(FOLDERS))))
LIB_SOURCES = $(filter-out $(MAINS),$(filter $(1)/%,$(SOURCES)))
archive = $(B)/lib/$(1).a
obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

.PHONY: all
all: $(addprefix $(BIN)/,$(PROGRAMS) $(STATIC_PROGRAMS)) library

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(if $(filter 0,$(V)),@echo "  CC    $<")
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/proto/build.o: $(SPOKEN)

# libnl keeps its headers in a folder of its own; one file includes them.
NL_CFLAGS = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags libnl-route-3.0))
$(B)/obj/jail/net.o: ALL_CFLAGS += $(NL_CFLAGS)

# The built-in policies are part of one object (.incbin), which -MMD does not see.
$(B)/obj/policy/builtin.o: $(wildcard policy/builtin/*.yaml)
$(B)/obj/supervisor/repo.o: $(wildcard supervisor/repo_*.sh)
$(B)/obj/abctl/checkout.o: abctl/checkout.sh

define folder_rules
$(call archive,$(1)): $(call obj,$(call LIB_SOURCES,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(AR) rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_rules,$(f))))

# A folder's archive and those it may use, in link order.
archives_of = $(foreach f,$(1) $(DEPS_$(1)),$(call archive,$(f)))

define program_rules
$(BIN)/$(1): $(call obj,$(MAIN_$(1))) $(call archives_of,$(patsubst %/,%,$(dir $(MAIN_$(1)))))
	@mkdir -p $$(@D)
	$(if $(filter 0,$(V)),@echo "  LINK  $$@")
	$(Q)$(CC) $$(ALL_CFLAGS) $$(ALL_LDFLAGS) $$^ $$(LIBS_$(1)) -o $$@
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rules,$(p))))

define static_rules
$(BIN)/$(1): $(SRCS_$(1)) $(wildcard proto/*.h policy/layers.h jail/*.h base/*.h)
	@mkdir -p $$(@D)
	$(if $(filter 0,$(V)),@echo "  STATIC $$@")
	$(Q)$(MUSL_CC) $$(STATIC_CFLAGS) -s $(SRCS_$(1)) $$(STATIC_LINK) -o $$@
endef
$(foreach p,$(STATIC_PROGRAMS),$(eval $(call static_rules,$(p))))

# ---- libagentbox: client/ and what it needs of base/, with no name to be seen but agentbox_* ----
LIBRARY := $(B)/lib/libagentbox
LIBRARY_VERSION := $(shell sed -n 's/^\#define AGENTBOX_VERSION "\(.*\)"/\1/p' base/version.h)
PIC = $(patsubst %.c,$(B)/pic/%.o,$(1))
.PHONY: library
library: $(LIBRARY).so.0 $(LIBRARY).a

$(B)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fPIE,$(ALL_CFLAGS)) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

$(B)/pic/base.a: $(call PIC,$(call LIB_SOURCES,base))
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(LIBRARY).so.0: $(call PIC,$(call LIB_SOURCES,client)) $(B)/pic/base.a packaging/libagentbox.map
	@mkdir -p $(@D)
	$(if $(filter 0,$(V)),@echo "  LIB   $@")
	$(Q)$(CC) -shared -Wl,-soname,libagentbox.so.0 -Wl,--version-script=packaging/libagentbox.map \
		$(filter-out -pie,$(ALL_LDFLAGS)) $(if $(filter release,$(MODE)),-Wl$(comma)-z$(comma)defs) \
		$(filter %.o %.a,$^) $(LIBS_client) -o $@

# One object, so that names of base/ can be made its own.
$(LIBRARY).a: $(call PIC,$(call LIB_SOURCES,client)) $(B)/pic/base.a
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(LD) -r $^ -o $(B)/pic/agentbox.o
	$(Q)objcopy --wildcard --keep-global-symbol='agentbox_*' $(B)/pic/agentbox.o
	$(Q)$(AR) rcs $@ $(B)/pic/agentbox.o

# ---- tests ----
UNIT_SOURCES := $(wildcard tests/unit/*.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(UNIT_SOURCES))

# tests/unit/<folder>_<module>.c links that folder and what it may use, nothing else.
define unit_rules
$(B)/tests/unit/$(2): tests/unit/$(2).c tests/t.h $(call archives_of,$(1))
	@mkdir -p $$(@D)
	$(if $(filter 0,$(V)),@echo "  TEST  $$@")
	$(Q)$(CC) $$(ALL_CFLAGS) -MMD -MP $$(ALL_LDFLAGS) $$< $(call archives_of,$(1)) \
		$(LIBS_$(1)) $(foreach d,$(DEPS_$(1)),$(LIBS_$(d))) -o $$@
endef
$(foreach t,$(patsubst tests/unit/%.c,%,$(UNIT_SOURCES)),\
	$(eval $(call unit_rules,$(firstword $(subst _, ,$(t))),$(t))))

# These start real jails.
$(addprefix $(B)/tests/unit/jail_,launch landlock packages template): tests/jail_rig.h \
	| $(BIN)/agentbox-init $(BIN)/agentbox-worker
$(B)/tests/unit/jail_acp: | $(BIN)/agentbox-acp

# ---- fuzz targets: fuzz/<target>.c, seeds in fuzz/corpus/<target>/ ----
FUZZ_TARGETS := $(filter-out replay,$(patsubst fuzz/%.c,%,$(wildcard fuzz/*.c)))
FUZZ_SECS ?= 30
FUZZ_FOLDERS := abctl client supervisor egress jail proto policy drivers base
FUZZ_LIBS := $(foreach f,$(FUZZ_FOLDERS),$(LIBS_$(f)))
REPLAYS := $(addprefix $(B)/fuzz/replay-,$(FUZZ_TARGETS))
FUZZERS := $(addprefix $(B)/fuzz/,$(FUZZ_TARGETS))
ifeq ($(MODE),fuzz)
all: $(FUZZERS)
endif

# The seeds as an ordinary test: the target linked with a small driver.
$(B)/fuzz/replay-%: fuzz/%.c fuzz/replay.c $(foreach f,$(FUZZ_FOLDERS),$(call archive,$(f)))
	@mkdir -p $(@D)
	$(if $(filter 0,$(V)),@echo "  TEST  $@")
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $^ $(FUZZ_LIBS) -o $@

# libFuzzer (MODE=fuzz, clang).
$(B)/fuzz/%: fuzz/%.c $(foreach f,$(FUZZ_FOLDERS),$(call archive,$(f)))
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -fsanitize=fuzzer $^ $(FUZZ_LIBS) -o $@

# ---- helpers of the integration tests: programs run inside jails or as peers ----
ESCAPES := $(patsubst tests/escape/%.c,$(B)/tests/escape/%,$(wildcard tests/escape/*.c))
FAKES := $(patsubst tests/fakes/%.c,$(B)/tests/fakes/%,$(wildcard tests/fakes/*.c))

$(B)/tests/escape/%: tests/escape/%.c $(wildcard tests/escape/*.h) tests/t.h
	@mkdir -p $(@D)
	$(Q)$(MUSL_CC) $(STATIC_CFLAGS) $< $(STATIC_LINK) -o $@

$(B)/tests/fakes/%: tests/fakes/%.c $(call archives_of,jail)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) $< $(call archives_of,jail) $(LIBS_base) \
		$(LIBS_policy) $(LIBS_jail) -o $@

# The supervisor with a driver that has a bug.
CRASHING := $(B)/tests/fakes/crashing_supervisor
$(CRASHING): tests/fakes/crashing_supervisor.c $(call obj,supervisor/main.c) $(call archives_of,supervisor)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -Wl,--wrap=driver_find $(filter %.c %.o %.a,$^) \
		$(LIBS_agentbox-supervisor) -o $@

# Faults injected into agentboxd by ptrace: nothing of it is in the programs that are shipped.
FAULTS := $(B)/tests/faults/inject
$(FAULTS): $(wildcard tests/faults/*.c tests/faults/*.h) $(call archive,base)
	@mkdir -p $(@D)
	$(if $(filter 0,$(V)),@echo "  TEST  $@")
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(filter %.c,$^) $(call archive,base) $(LIBS_base) -o $@

BENCHES := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))
BENCHED := $(call archives_of,egress) $(call archives_of,abctl) $(call archives_of,jail)
$(B)/bench/%: bench/%.c $(BENCHED)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) $< $(BENCHED) $(LIBS_egress) $(LIBS_policy) \
		$(LIBS_base) -o $@

# ---- targets for people ----
# Each test is its own process with a time limit.  What fails is said where it does, with the test's
# reasons; prove's closing lines sum up.
PROVE := prove --timer --failures --comments -e 'timeout -k 5 600'
INTEGRATION := $(sort $(wildcard tests/integration/*.t))
JOBS_unit := 2
JOBS_integration := 4

.PHONY: help deps test check unit replay test-programs integration test-vm test-vm-deep test-tools test-agents asan fuzz lint bench demo install
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

deps: ## installs the Debian packages needed (as root), or prints the command
	$(Q)tools/deps.sh

test: deps ## all tests; installs what they need
	$(Q)$(MAKE) --no-print-directory -j2 check

check: all unit replay integration ## all tests, installing nothing

unit: $(UNIT_TESTS)
	$(Q)$(PROVE) -j$(JOBS_unit) $(UNIT_TESTS)

replay: $(REPLAYS)
	$(Q)$(PROVE) $(REPLAYS)

test-programs: all $(UNIT_TESTS) $(ESCAPES) $(FAKES) $(FAULTS) ## builds all that tests run, and runs nothing

# Most of these wait more than they work, so four go at once; those that fill the machine, or say how
# long something takes or what the host has, go by themselves.
numbered = $(filter $(foreach n,$(1),tests/integration/$(n).t),$(INTEGRATION))
ALONE = $(call numbered,41-% 53-outside 55-% 58-% 60-% 62-% 63-% 64-% 76-% 77-%)
integration: all unit $(ESCAPES) $(FAKES) $(FAULTS)
	$(Q)export BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests); failed=0; \
	$(PROVE) -j$(JOBS_integration) $(filter-out $(ALONE),$(INTEGRATION)) || failed=1; \
	$(PROVE) $(ALONE) || failed=1; \
	exit $$failed

# What a host may lack: all controllers, systemd, a power switch.  VM_DEEP: what takes many minutes more there.
VM_DEEP := $(call numbered,42-% 47-disk 51-% 53-packages 64-%) $(wildcard tests/vm/inside/1[67]-*.t)
VM_TESTS := $(call numbered,20-% 30-% 36-% 40-% 43-% 46-% 47-selftest 48-% 50-% 52-% 53-outside 57-% 60-%) \
	$(filter-out $(VM_DEEP),$(wildcard tests/vm/inside/*.t tests/vm/*.t))

test-vm: ## limits, escapes, systemd and power cuts in a virtual machine (root; tests/vm/README.md)
	$(Q)tools/deps.sh vm
	$(Q)$(MAKE) --no-print-directory -j2 test-programs deb
	$(Q)tests/vm/rig test $(VM_TESTS)

test-vm-deep: ## there too: every system call, noisy neighbours, runs adopted, disks (half an hour)
	$(Q)tools/deps.sh vm
	$(Q)$(MAKE) --no-print-directory -j2 test-programs
	$(Q)tests/vm/rig test --timeout 1800 $(VM_DEEP)

TOOL_TESTS := $(wildcard tests/tools/*.t)
test-tools: ## curl, npm, pip, go, cargo, java ... inside, against an internet of the test's own (root)
	$(Q)tools/deps.sh tools
	$(Q)$(MAKE) --no-print-directory -j2 test-programs
	$(Q)BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) $(PROVE) $(TOOL_TESTS)

AGENT_TESTS := $(wildcard tests/agents/*.t)
test-agents: ## every case with the real claude, codex, opencode, gemini, qwen, copilot, pi, cline, and their keys (root, npm; 15 minutes)
	$(Q)tools/deps.sh
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) $(PROVE:600'=1800') -j2 $(AGENT_TESTS)

S3_SERVER := $(B)/s3
.PHONY: test-s3
test-s3: ## artifacts in a server of S3 from npm, which checks every signature (root, npm; half a minute)
	$(Q)tools/deps.sh
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)mkdir -p $(S3_SERVER) && cp tests/s3/package.json tests/s3/package-lock.json $(S3_SERVER)/
	$(Q)npm ci --prefix $(S3_SERVER) --no-audit --no-fund --ignore-scripts --silent
	$(Q)BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) S3_SERVER=$(abspath $(S3_SERVER)) $(PROVE) tests/s3/10-server.t

DEEP_TESTS := $(wildcard tests/deep/*.t)
.PHONY: test-deep
test-deep: ## a hundred deaths under load, thousands of connections (root; some minutes)
	$(Q)tools/deps.sh
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) $(PROVE:600'=1800') $(DEEP_TESTS)

DEEP_SECS ?= 600
.PHONY: deep
deep: all test-programs ## a hundred jails at random for DEEP_SECS seconds
	$(Q)BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) CROWD_SECONDS=$(DEEP_SECS) \
		prove --timer -v tests/integration/77-crowd.t

asan: ## build with AddressSanitizer and UBSan into build/asan
	$(Q)$(MAKE) --no-print-directory MODE=asan all

fuzz: ## run each fuzz target FUZZ_SECS seconds (clang, libFuzzer)
	$(Q)$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-run

.PHONY: fuzz-run
fuzz-run: $(FUZZERS)
	$(Q)for f in $(FUZZ_TARGETS); do mkdir -p build/fuzz/found/$$f; echo "== $$f"; \
		$(B)/fuzz/$$f -max_total_time=$(FUZZ_SECS) -timeout=10 -rss_limit_mb=2048 \
		build/fuzz/found/$$f fuzz/corpus/$$f || exit 1; done

lint: ## folder graph, sizes, analyzers, scripts, man pages
	$(Q)tools/lint.sh "$(foreach f,$(FOLDERS),$(f):$(subst $(space),$(comma),$(strip $(DEPS_$(f)))))" \
		"$(ORDER_supervisor)" "$(BASEFLAGS) $(NL_CFLAGS) -Iclient"

.PHONY: faults
faults: all $(FAULTS) ## each system call of a jail's life failing in each way it can (half an hour)
	$(Q)for pool in 0 2; do BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) FAULTS=all \
		FAULTS_POOL=$$pool prove --timer --failures --comments tests/integration/41-death-in-the-making.t \
		tests/integration/58-faults.t || exit 1; done

BENCH ?= all
bench: all $(BENCHES) $(FAKES) ## measures as name<TAB>value<TAB>unit; BENCH=name runs one
	$(Q)BIN=$(abspath $(BIN)) TESTS=$(abspath $(B)/tests) \
		BENCHES=$(abspath $(B)/bench) tools/bench.sh $(BENCH)

demo: deps ## a real coding agent at work in a jail, start to end
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)BIN=$(abspath $(BIN)) tools/demo.sh

# ---- install ----
install: all ## into $(DESTDIR)$(PREFIX); on a live system also users and directories
	$(Q)packaging/install.sh "$(DESTDIR)" "$(PREFIX)" "$(BIN)"

.PHONY: deb
deb: all ## Debian packages into build/$(MODE)/deb (dpkg-dev)
	$(Q)packaging/deb.sh "$(BIN)" "$(B)/deb"

-include $(shell find $(B) -name '*.d' 2>/dev/null)

.PHONY: clean
clean: ## removes build/
	rm -rf build
