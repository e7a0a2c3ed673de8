# agentbox: one non-recursive Makefile.  `make help` lists the targets.
#
# The folder graph below is data: it decides include checks (make lint), what
# the unit tests of a folder may link, and what each program links.

MODE ?= release
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
MUSL_CC ?= musl-gcc
PREFIX ?= /usr/local
DESTDIR ?=
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

B := build/$(MODE)
BIN := $(B)/bin

# ---- the folder graph: DEPS_x = what x may include and link ----
FOLDERS := base proto policy drivers jail egress supervisor abctl
DEPS_base :=
DEPS_policy := base
DEPS_proto := policy base
DEPS_drivers := base
DEPS_jail := proto policy base
DEPS_egress := proto policy base
DEPS_supervisor := drivers proto policy base
DEPS_abctl := proto base

# ---- programs: main file, libraries (the link line shows the privilege) ----
PROGRAMS := agentboxd agentbox-supervisor agentbox-egress agentbox-policyc abctl
MAIN_agentboxd := jail/agentboxd.c
LIBS_agentboxd := -lnl-route-3 -lnl-3
MAIN_agentbox-supervisor := supervisor/main.c
LIBS_agentbox-supervisor := -luring -lmicrohttpd -lsqlite3 -lcjson -lyaml
MAIN_agentbox-egress := egress/main.c
LIBS_agentbox-egress := -luring -lcurl -lcares -lcjson
MAIN_agentbox-policyc := policy/policyc.c
LIBS_agentbox-policyc := -lyaml -lseccomp
MAIN_abctl := abctl/abctl.c
LIBS_abctl := -lcjson

# Run inside jails: static, small, built with musl and never sanitized.
STATIC_PROGRAMS := agentbox-init agentbox-worker
SRCS_agentbox-init := jail/init.c proto/exec_unpack.c
SRCS_agentbox-worker := jail/worker.c

# Libraries a folder's unit tests may need.
LIBS_base := -lcjson
LIBS_policy := -lyaml -lseccomp
LIBS_jail := -lnl-route-3 -lnl-3
LIBS_egress := -luring -lcurl -lcares
LIBS_supervisor := -luring -lmicrohttpd -lsqlite3

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
	-fno-omit-frame-pointer
OPT_fuzz := -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-omit-frame-pointer
LD_asan := -fsanitize=address,undefined
LD_fuzz := -fsanitize=address,undefined

BASEFLAGS := -std=gnu17 -D_GNU_SOURCE -I. $(WARN)
ALL_CFLAGS = $(BASEFLAGS) $(HARDEN) $(OPT_$(MODE)) $(CFLAGS)
ALL_LDFLAGS = $(LDHARDEN) $(LD_$(MODE)) $(LDFLAGS)
STATIC_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. $(WARN) -O2 -g -fPIE -fstack-protector-strong \
	-fno-strict-aliasing -ffunction-sections -idirafter /usr/include \
	-idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

# ---- objects ----
MAINS := $(foreach p,$(PROGRAMS),$(MAIN_$(p)))
STATIC_ONLY := jail/init.c jail/worker.c
SOURCES := $(filter-out $(STATIC_ONLY),$(wildcard $(addsuffix /*.c,$(FOLDERS))))
LIB_SOURCES = $(filter-out $(MAINS),$(filter $(1)/%,$(SOURCES)))
archive = $(B)/lib/$(1).a
obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

.PHONY: all
all: $(addprefix $(BIN)/,$(PROGRAMS) $(STATIC_PROGRAMS))

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(if $(filter 0,$(V)),@echo "  CC    $<")
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

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
$(BIN)/$(1): $(SRCS_$(1)) $(wildcard proto/*.h jail/*.h base/*.h)
	@mkdir -p $$(@D)
	$(if $(filter 0,$(V)),@echo "  STATIC $$@")
	$(Q)$(MUSL_CC) $$(STATIC_CFLAGS) -static-pie -s $(SRCS_$(1)) -o $$@
endef
$(foreach p,$(STATIC_PROGRAMS),$(eval $(call static_rules,$(p))))

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

.PHONY: unit
unit: $(UNIT_TESTS)
	$(Q)prove --timer -j2 -e '' $(UNIT_TESTS)

-include $(shell find build/$(MODE) -name '*.d' 2>/dev/null)

.PHONY: clean
clean:
	rm -rf build
