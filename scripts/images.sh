#!/usr/bin/env bash
# The images the demo and the tests rent, built without a network and without an engine: a static
# busybox in a tar file, its configuration and its manifest, sent straight to a registry.
#
# Without the engine for two reasons: an image that was never built on the engine has to be pulled
# by it, as a renter's image would; and the digests depend on the bytes of busybox alone, so they
# are the same on every run.
#
# Run:     scripts/images.sh REGISTRY [NAME…]     e.g. scripts/images.sh 127.0.0.1:5000 demo
# Prints:  one line for each image, "NAME REGISTRY/feira-NAME@sha256:…"
# Sourced: `push_images REGISTRY [NAME…]` does the same.
#
# Must not: need root, touch an engine, or leave a file behind.

# Names of the images, and what each is for.
IMAGE_NAMES=(
    demo      # a shell and the usual commands; prints one line a second, ends cleanly on SIGTERM
    noshell   # one static program and nothing else: no shell to open
    nocommand # its command does not exist in it
    exit3     # prints to both streams and exits with 3
    stubborn  # ignores SIGTERM, so only SIGKILL ends it
    volume    # declares a volume, which gives writable disk behind the limits unless it is refused
    big       # three layers of 100 MB: a pull that takes a while, a disk that is too small
    index     # the demo image behind an image index, as images for several machines are published
)

# The prover of hardware, which takes a program that was built before; only pushed where one is named.
PROVER_NAMES=(
    prover        # for NVIDIA's GPUs, whose driver the host puts into the container
    prover-vulkan # with Mesa's Vulkan drivers of this machine, for AMD's and Intel's GPUs and for none
)

push_images() {
    local registry=$1
    shift
    local names=("$@") work status=0
    ((${#names[@]})) || names=("${IMAGE_NAMES[@]}")
    work=$(mktemp -d "${TMPDIR:-/tmp}/feira-images.XXXXXX")
    (push_each "$registry" "$work" "${names[@]}") || status=$?
    rm -rf "$work"
    return "$status"
}

push_each() {
    local registry=$1 work=$2 name
    shift 2
    busybox_path >/dev/null
    for name in "$@"; do
        case "$name" in
            demo | noshell | nocommand | exit3 | stubborn | volume | big | index) ;;
            prover | prover-vulkan) ;;
            *)
                echo "no image is called '$name'; there are: ${IMAGE_NAMES[*]} ${PROVER_NAMES[*]}" >&2
                return 2
                ;;
        esac
        "image_${name//-/_}" "$registry" "$work"
    done
}

# The static busybox of Debian's busybox-static, or the one named by FEIRA_BUSYBOX.
busybox_path() {
    local path=${FEIRA_BUSYBOX:-$(command -v busybox || true)}
    if [ -z "$path" ] || [ ! -x "$path" ]; then
        echo "no busybox here; install Debian's busybox-static, or set FEIRA_BUSYBOX" >&2
        return 1
    fi
    # A dynamic busybox would start nowhere but here. Its ELF header names an interpreter.
    if head -c 4096 "$path" | tr '\0' '\n' | grep -q '^/lib.*/ld-'; then
        echo "$path is linked dynamically; install Debian's busybox-static, or set FEIRA_BUSYBOX" >&2
        return 1
    fi
    printf '%s\n' "$path"
}

image_demo() {
    shell_layer "$1" "$2" demo
    manifest "$1" "$2" demo '"Cmd":["/bin/feira-demo"]'
}

image_noshell() {
    local root=$2/noshell.root
    mkdir -p "$root/bin"
    install -m 755 "$(busybox_path)" "$root/bin/sleep"
    layer "$1" "$2" noshell "$root"
    manifest "$1" "$2" noshell '"Cmd":["/bin/sleep","86400"]'
}

image_nocommand() {
    shell_layer "$1" "$2" nocommand
    manifest "$1" "$2" nocommand '"Cmd":["/bin/not-in-this-image"]'
}

image_exit3() {
    shell_layer "$1" "$2" exit3
    manifest "$1" "$2" exit3 \
        '"Cmd":["/bin/sh","-c","echo to standard output; echo to standard error >&2; exit 3"]'
}

image_stubborn() {
    shell_layer "$1" "$2" stubborn
    manifest "$1" "$2" stubborn \
        '"Cmd":["/bin/sh","-c","trap \"\" TERM; echo deaf; while :; do sleep 1; done"]'
}

image_volume() {
    shell_layer "$1" "$2" volume
    manifest "$1" "$2" volume '"Cmd":["/bin/feira-demo"],"Volumes":{"/var/data":{}}'
}

# Not compressed, so that the bytes pulled are the bytes on the disk and no time goes into gzip.
image_big() {
    local part root=$2/big.root
    shell_layer "$1" "$2" big
    for part in 1 2 3; do
        rm -rf "$root"
        mkdir -p "$root"
        hundred_megabytes >"$root/part-$part"
        layer "$1" "$2" big "$root" plain
    done
    rm -rf "$root"
    manifest "$1" "$2" big '"Cmd":["/bin/feira-demo"]'
}

image_index() {
    local registry=$1 work=$2 digest size
    shell_layer "$registry" "$work" index
    manifest "$registry" "$work" index '"Cmd":["/bin/feira-demo"]' >/dev/null
    digest=$(digest_of "$work/index.manifest")
    size=$(stat -c %s "$work/index.manifest")
    printf '{"schemaVersion":2,"mediaType":"%s","manifests":[{"mediaType":"%s","digest":"%s","size":%s,"platform":{"architecture":"%s","os":"linux"}}]}' \
        application/vnd.oci.image.index.v1+json application/vnd.oci.image.manifest.v1+json \
        "$digest" "$size" "$(architecture)" >"$work/index.index"
    put_manifest "$registry" index "$work/index.index" application/vnd.oci.image.index.v1+json
}

# The program, its libraries, and something that runs until the program is run beside it. No shell. The driver's
# own library (libcuda.so.1) is the host's to bring: it has to fit its kernel.
image_prover() {
    prover_root "$2/prover.root"
    layer "$1" "$2" prover "$2/prover.root"
    manifest "$1" "$2" prover '"Cmd":["/bin/sleep","86400"]'
}

# Loader and drivers are found by name when they are called for, so no program names them as its libraries.
image_prover_vulkan() {
    local root=$2/prover-vulkan.root drivers=/usr/share/vulkan/icd.d
    prover_root "$root"
    if [ ! -d "$drivers" ]; then
        echo "no Vulkan drivers here; install Debian's mesa-vulkan-drivers and libvulkan1" >&2
        return 1
    fi
    mkdir -p "$root$drivers"
    cp "$drivers"/*.json "$root$drivers/"
    local library libraries=()
    for library in libvulkan.so.1 $(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$drivers"/*.json); do
        case "$library" in
            /*) libraries+=("$library") ;;
            *) libraries+=("$(ldconfig -p | awk -v name="$library" '$1 == name { print $NF; exit }')") ;;
        esac
    done
    with_libraries "$root" "${libraries[@]}"
    layer "$1" "$2" prover-vulkan "$root"
    manifest "$1" "$2" prover-vulkan '"Cmd":["/bin/sleep","86400"]'
}

# The program of FEIRA_PROVER, or of a release build.
prover_root() {
    local program=${FEIRA_PROVER:-${CARGO_TARGET_DIR:-target}/release/feira-prover}
    if [ ! -x "$program" ]; then
        echo "no prover at $program; build it with \`cargo build --release -p prover\`, or set FEIRA_PROVER" >&2
        return 1
    fi
    mkdir -p "$1/bin" "$1/tmp" "$1/workspace"
    install -m 755 "$(busybox_path)" "$1/bin/sleep"
    install -m 755 "$program" "$1/bin/feira-prover"
    with_libraries "$1" "$1/bin/feira-prover"
}

# with_libraries ROOT FILE…: puts the files that are not in ROOT, and all that `ldd` names of them, into it.
with_libraries() {
    local root=$1 file library
    shift
    for file in "$@"; do
        for library in "$file" $(ldd "$file" | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i }'); do
            case "$library" in
                "$root"/*) continue ;;
            esac
            [ -e "$root$library" ] || install -D -m 755 "$library" "$root$library"
        done
    done
}

# shell_layer REGISTRY WORK NAME: the layer with a shell, the common commands and a user table.
shell_layer() {
    local root=$2/shell.root busybox applet
    if [ ! -d "$root" ]; then
        busybox=$(busybox_path)
        mkdir -p "$root"/{bin,dev,etc,proc,root,sys,tmp,var,workspace}
        chmod 1777 "$root/tmp"
        chmod 700 "$root/root"
        install -m 755 "$busybox" "$root/bin/busybox"
        for applet in $("$busybox" --list); do
            [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
        done
        printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' \
            >"$root/etc/passwd"
        printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
        cat >"$root/bin/feira-demo" <<'PROGRAM'
#!/bin/sh
# Runs until it is told to stop, and says so.
trap 'echo "feira-demo: stopping"; exit 0' TERM INT
echo "feira-demo: ready"
n=0
while :; do
    sleep 1 &
    wait $!
    n=$((n + 1))
    echo "feira-demo: tick $n"
done
PROGRAM
        chmod 755 "$root/bin/feira-demo"
    fi
    layer "$1" "$2" "$3" "$root"
}

# layer REGISTRY WORK NAME ROOT [plain]: packs ROOT, sends it, and notes it for the manifest.
layer() {
    local registry=$1 work=$2 name=$3 root=$4 how=${5:-gzip} media blob diff_id
    blob=$work/$name.layer
    tar --create --file "$blob.tar" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
        --format=ustar --directory "$root" .
    diff_id=$(digest_of "$blob.tar")
    if [ "$how" = plain ]; then
        media=application/vnd.oci.image.layer.v1.tar
        mv "$blob.tar" "$blob"
    else
        media=application/vnd.oci.image.layer.v1.tar+gzip
        gzip -n -6 <"$blob.tar" >"$blob"
        rm "$blob.tar"
    fi
    printf '"%s"\n' "$diff_id" >>"$work/$name.diff_ids"
    descriptor "$media" "$blob" >>"$work/$name.layers"
    put_blob "$registry" "$name" "$blob"
    rm "$blob"
}

# manifest REGISTRY WORK NAME CONFIG: the configuration and the manifest over the noted layers.
manifest() {
    local registry=$1 work=$2 name=$3 config=$4 path='PATH=/usr/bin:/bin'
    printf '{"architecture":"%s","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Env":["%s"],"WorkingDir":"/",%s},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
        "$(architecture)" "$path" "$config" "$(paste -sd, "$work/$name.diff_ids")" \
        >"$work/$name.config"
    put_blob "$registry" "$name" "$work/$name.config"
    printf '{"schemaVersion":2,"mediaType":"%s","config":%s,"layers":[%s]}' \
        application/vnd.oci.image.manifest.v1+json \
        "$(descriptor application/vnd.oci.image.config.v1+json "$work/$name.config")" \
        "$(paste -sd, "$work/$name.layers")" >"$work/$name.manifest"
    put_manifest "$registry" "$name" "$work/$name.manifest" \
        application/vnd.oci.image.manifest.v1+json
}

descriptor() {
    printf '{"mediaType":"%s","digest":"%s","size":%s}\n' \
        "$1" "$(digest_of "$2")" "$(stat -c %s "$2")"
}

digest_of() {
    sha256sum "$1" | sed 's/^\([0-9a-f]*\).*/sha256:\1/'
}

architecture() {
    dpkg --print-architecture
}

# Files of 100 MB that are the same every time: busybox, over and over.
hundred_megabytes() {
    local busybox size copies
    busybox=$(busybox_path)
    size=$(stat -c %s "$busybox")
    copies=$((100000000 / size + 1))
    # `head` closes the pipe when it has enough, which is not a failure.
    { for ((; copies > 0; copies--)); do cat "$busybox"; done || true; } | head -c 100000000
}

put_blob() {
    local url=http://$1/v2/feira-$2/blobs digest location
    digest=$(digest_of "$3")
    if ask --head "$url/$digest" >/dev/null 2>&1; then
        return
    fi
    location=$(ask --dump-header - --output /dev/null --request POST "$url/uploads/" |
        tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
    case "$location" in
        *\?*) location="$location&digest=$digest" ;;
        *) location="$location?digest=$digest" ;;
    esac
    ask --output /dev/null --header 'Content-Type: application/octet-stream' \
        --upload-file "$3" "$location"
}

# put_manifest REGISTRY NAME FILE MEDIA-TYPE: sends it under the tag `1`, and prints the image.
put_manifest() {
    ask --output /dev/null --header "Content-Type: $4" --upload-file "$3" \
        "http://$1/v2/feira-$2/manifests/1"
    printf '%s %s/feira-%s@%s\n' "$2" "$1" "$2" "$(digest_of "$3")"
}

# Never through a proxy: the registry is on this machine.
ask() {
    curl --silent --show-error --fail --noproxy '*' --max-time 120 "$@"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    if (($# == 0)) || [ "$1" = --help ]; then
        sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
        exit $(($# == 0 ? 2 : 0))
    fi
    push_images "$@"
fi
