# Sourced by the other scripts: what the machine needs, a Docker engine and an image registry.
# shellcheck shell=bash
#
# An engine or a registry that already answers is used and left alone. One that has to be started
# keeps its sockets, its images and its logs in a folder of ours and is stopped by its process id,
# so that several can run beside each other and none fights the system's.
#
# Gives:   need_machine, engine_up DIR, engine_down, registry_up DIR, registry_down
# Exports: DOCKER_HOST (only for an engine of ours), FEIRA_TEST_REGISTRY (host:port)
# Must not: stop what it did not start, change a service of the system, write outside DIR.

OWN_ENGINE_DIR=''
OWN_ENGINE_PID=''
OWN_ENGINE_BRIDGE=''
FORWARDING_BEFORE=''
OWN_REGISTRY_DIR=''
OWN_REGISTRY_PID=''

# --- what the machine needs ----------------------------------------------------------------------

# as_root COMMAND…: as the user who may, by sudo where that is somebody else.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "this needs root and there is no sudo: $*" >&2
        return 1
    fi
}

# need_machine PACKAGE…: installs the Debian packages that are missing, these and what every script
# needs; and puts cargo's place in PATH.
need_machine() {
    local package missing=()
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ -d "$HOME/.cargo/bin" ] && PATH=$PATH:$HOME/.cargo/bin
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
    export PATH
    command -v cargo >/dev/null || {
        echo "cargo is missing: install Rust first, https://rustup.rs" >&2
        return 1
    }
    command -v cc >/dev/null || missing+=(gcc)
    [ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
    command -v make >/dev/null || missing+=(make)
    command -v curl >/dev/null || missing+=(curl ca-certificates)
    # `kill` as a program, which the tests run.
    [ -x /bin/kill ] || missing+=(procps)
    command -v ip >/dev/null || missing+=(iproute2)
    command -v iptables >/dev/null || missing+=(iptables)
    # The client always; the engine's own program only where none runs.
    if ! command -v docker >/dev/null || ! { engine_answers || command -v dockerd >/dev/null; }; then
        missing+=(docker.io)
    fi
    command -v docker-registry >/dev/null || missing+=(docker-registry)
    [ -n "${FEIRA_BUSYBOX:-}" ] || is_installed busybox-static || missing+=(busybox-static)
    ((${#missing[@]})) || return 0
    echo "installing ${missing[*]}"
    without_services install_packages "${missing[@]}"
}

is_installed() {
    dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

install_packages() {
    local log
    log=$(mktemp)
    if ! { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

# without_services COMMAND…: packages that bring a service install it without starting it. Debian
# asks /usr/sbin/policy-rc.d, and 101 means no.
without_services() {
    local policy=/usr/sbin/policy-rc.d status=0
    if [ -e "$policy" ]; then
        "$@"
        return
    fi
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    "$@" || status=$?
    as_root rm -f "$policy"
    return "$status"
}

# need_cargo_tool NAME: a cargo sub-command, from PATH or built once into target/tools.
#
# A build without optimisation: it takes a third of the time, and these tools wait for others.
need_cargo_tool() {
    local name=$1 tools=${CARGO_TARGET_DIR:-$PWD/target}/tools log
    case ":$PATH:" in *":$tools/bin:"*) ;; *) export PATH=$PATH:$tools/bin ;; esac
    command -v "$name" >/dev/null && return 0
    echo "building $name (a few minutes, once)"
    mkdir -p "$tools"
    log=$tools/$name.log
    if ! CARGO_TARGET_DIR=$tools/build cargo install --locked --debug --root "$tools" "$name" \
        >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        return 1
    fi
    rm -rf "$tools/build"
}

# --- the engine ----------------------------------------------------------------------------------

# engine_up DIR: an engine that answers, ours if there is none, or if FEIRA_OWN_ENGINE is 1. DIR
# must be short: the path of a socket inside it must stay under 108 bytes.
engine_up() {
    local dir=$1 firewall=()
    if engine_answers; then
        [ "${FEIRA_OWN_ENGINE:-0}" = 1 ] || return 0
        # Two engines that both write firewall rules delete each other's. The one that was here
        # first keeps them; containers of ours then reach each other, but not the internet.
        firewall=(--iptables=false)
    fi
    mkdir -p "$dir"
    OWN_ENGINE_DIR=$dir
    OWN_ENGINE_BRIDGE=feira$((RANDOM % 10000))
    FORWARDING_BEFORE=$(as_root iptables -S FORWARD 2>/dev/null | sed -n 's/^-P FORWARD //p' || true)
    export DOCKER_HOST=unix://$dir/docker.sock
    # From the usual to the last resort. A kernel without nf_tables needs the older iptables; one
    # without overlayfs (or a folder that is itself on an overlay) needs plain copies.
    engine_starts "$dir" "${firewall[@]}" ||
        engine_starts "$dir" "${firewall[@]}" --storage-driver vfs ||
        FEIRA_LEGACY_IPTABLES=1 engine_starts "$dir" "${firewall[@]}" ||
        FEIRA_LEGACY_IPTABLES=1 engine_starts "$dir" "${firewall[@]}" --storage-driver vfs || {
        echo "no Docker engine answers, and one of our own does not start; it said:" >&2
        tail -n 15 "$dir/dockerd.log" >&2
        return 1
    }
}

engine_answers() {
    command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1
}

# engine_starts DIR FLAG…: whether an engine with these flags comes up.
engine_starts() {
    local dir=$1 path=$PATH round
    shift
    if [ "${FEIRA_LEGACY_IPTABLES:-0}" = 1 ]; then
        [ -x /usr/sbin/iptables-legacy ] || return 1
        mkdir -p "$dir/legacy"
        ln -sf /usr/sbin/iptables-legacy "$dir/legacy/iptables"
        ln -sf /usr/sbin/ip6tables-legacy "$dir/legacy/ip6tables"
        path=$dir/legacy:$PATH
    fi
    # Where a password is wanted it is asked for here, and not behind our back.
    as_root true || return 1
    bridge_up || return 1
    # In a session of its own, so that a Ctrl-C at the terminal reaches us and not the engine,
    # which is to be stopped in its turn.
    as_root env "PATH=$path" setsid dockerd \
        --host "$DOCKER_HOST" --group "$(id -gn)" --pidfile "$dir/docker.pid" \
        --data-root "$dir/data" --exec-root "$dir/exec" --bridge "$OWN_ENGINE_BRIDGE" "$@" \
        </dev/null >"$dir/dockerd.log" 2>&1 &
    OWN_ENGINE_PID=$!
    for ((round = 0; round < 120; round++)); do
        if engine_answers; then
            OWN_ENGINE_PID=$(cat "$dir/docker.pid")
            return 0
        fi
        process_lives "$OWN_ENGINE_PID" || break
        sleep 0.25
    done
    stop_process "$OWN_ENGINE_PID"
    OWN_ENGINE_PID=''
    return 1
}

# A bridge of our own, so that an engine of the system keeps its docker0. Its network is one of
# 256 that few machines use; a second try takes another.
bridge_up() {
    local round
    ip link show "$OWN_ENGINE_BRIDGE" >/dev/null 2>&1 && return 0
    as_root ip link add name "$OWN_ENGINE_BRIDGE" type bridge || return 1
    for ((round = 0; round < 5; round++)); do
        as_root ip address add "10.213.$((RANDOM % 256)).1/24" dev "$OWN_ENGINE_BRIDGE" && break
    done
    as_root ip link set "$OWN_ENGINE_BRIDGE" up
}

# An engine that stops leaves its rules in the firewall, and the policy it gave to forwarding.
firewall_down() {
    local table line iptables=iptables
    [ -d "$OWN_ENGINE_DIR/legacy" ] && iptables='iptables-legacy'
    for table in nat filter; do
        while read -r line; do
            # shellcheck disable=SC2086 # a rule as iptables prints it, split into its words
            as_root "$iptables" -t "$table" -D ${line#-A } 2>/dev/null || true
        done < <(as_root "$iptables" -t "$table" -S 2>/dev/null | grep -- "^-A .* $OWN_ENGINE_BRIDGE ")
    done
    [ "$FORWARDING_BEFORE" != ACCEPT ] || as_root "$iptables" -P FORWARD ACCEPT 2>/dev/null || true
}

# engine_down: stops the engine that engine_up started, with its containers, and removes its folder.
engine_down() {
    local containers mount
    [ -n "$OWN_ENGINE_DIR" ] || return 0
    if [ -n "$OWN_ENGINE_PID" ]; then
        containers=$(timeout 20 docker ps --all --quiet 2>/dev/null || true)
        # shellcheck disable=SC2086 # one word for each container
        [ -z "$containers" ] || timeout 60 docker rm --force --volumes $containers >/dev/null 2>&1 || true
        timeout 60 docker network prune --force >/dev/null 2>&1 || true
        stop_process "$OWN_ENGINE_PID"
    fi
    # The engine leaves its namespace mounts behind where it is killed; deepest first.
    while read -r mount; do
        as_root umount --lazy "$mount" || true
    done < <(grep -o " $OWN_ENGINE_DIR/[^ ]*" /proc/self/mounts | sort -r)
    firewall_down
    as_root ip link delete "$OWN_ENGINE_BRIDGE" >/dev/null 2>&1 || true
    as_root rm -rf "$OWN_ENGINE_DIR"
    OWN_ENGINE_DIR=''
    OWN_ENGINE_PID=''
    unset DOCKER_HOST
}

# --- the registry --------------------------------------------------------------------------------

# registry_up DIR: the registry named by FEIRA_TEST_REGISTRY where it answers, else one of ours on
# a free port of the loopback address.
registry_up() {
    local dir=$1 port attempt round
    if [ -n "${FEIRA_TEST_REGISTRY:-}" ] && registry_answers "$FEIRA_TEST_REGISTRY"; then
        return 0
    fi
    mkdir -p "$dir"
    OWN_REGISTRY_DIR=$dir
    for ((attempt = 0; attempt < 10; attempt++)); do
        port=$((20000 + RANDOM % 10000))
        registry_config "$dir" "$port" >"$dir/registry.yml"
        setsid docker-registry serve "$dir/registry.yml" </dev/null >"$dir/registry.log" 2>&1 &
        OWN_REGISTRY_PID=$!
        for ((round = 0; round < 50; round++)); do
            process_lives "$OWN_REGISTRY_PID" || break
            # Both: something else may be the one that answers on that port.
            if registry_answers "127.0.0.1:$port" && process_lives "$OWN_REGISTRY_PID"; then
                export FEIRA_TEST_REGISTRY=127.0.0.1:$port
                return 0
            fi
            sleep 0.1
        done
        stop_process "$OWN_REGISTRY_PID"
        OWN_REGISTRY_PID=''
    done
    echo "the registry does not start; it said:" >&2
    tail -n 10 "$dir/registry.log" >&2
    return 1
}

registry_answers() {
    curl --silent --fail --noproxy '*' --max-time 5 --output /dev/null "http://$1/v2/"
}

registry_config() {
    cat <<CONFIG
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: "$1/store"}}
http: {addr: "127.0.0.1:$2"}
CONFIG
}

# registry_down: stops the registry that registry_up started, and removes its folder.
registry_down() {
    [ -n "$OWN_REGISTRY_DIR" ] || return 0
    [ -z "$OWN_REGISTRY_PID" ] || stop_process "$OWN_REGISTRY_PID"
    rm -rf "$OWN_REGISTRY_DIR"
    OWN_REGISTRY_DIR=''
    OWN_REGISTRY_PID=''
    unset FEIRA_TEST_REGISTRY
}

# --- processes -----------------------------------------------------------------------------------

# stop_process PID: asks it to end, waits 20 seconds, then ends it.
stop_process() {
    local pid=$1 round signal=(kill)
    process_lives "$pid" || return 0
    # Another user's process (an engine started through sudo) takes root to stop.
    kill -0 "$pid" 2>/dev/null || signal=(as_root kill)
    "${signal[@]}" -TERM "$pid" 2>/dev/null || true
    for ((round = 0; round < 200; round++)); do
        process_lives "$pid" || break
        sleep 0.1
    done
    if process_lives "$pid"; then
        "${signal[@]}" -KILL "$pid" 2>/dev/null || true
    fi
    # Collects its exit status where it was ours to start.
    wait "$pid" 2>/dev/null || true
}

# A process that ended and was not yet waited for is still listed, as a zombie.
process_lives() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null || true)
    [ -n "$state" ] && [ "$state" != Z ]
}
