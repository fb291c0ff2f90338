# shellcheck shell=sh
# Functions that every exported test uses: looks for hardware and tools, runs the command, writes down what happened.
# POSIX shell; needs only coreutils. Results go to $CW_RESULTS/TEST/UNIT/: stdout.txt, stderr.txt and run.json.

CW_RESULTS=${CW_RESULTS:-$CW_HOME/results}
if [ -f "$CW_HOME/settings.sh" ]; then
    # shellcheck source=/dev/null
    . "$CW_HOME/settings.sh"
fi

# The name of this node as the architecture writes it, and of this run (the node, a pair, all).
if [ -z "${CW_NODE:-}" ]; then
    CW_NODE=${SLURMD_NODENAME:-$(uname -n | cut -d. -f1)}
fi
if [ "${CW_UNIT:-each}" = each ]; then
    CW_UNIT=$CW_NODE
fi
CW_NODE_RANK=${CW_NODE_RANK:-${SLURM_NODEID:-0}}
CW_ROLE=${CW_ROLE:-}
if [ -z "${CW_ENGINE:-}" ]; then
    if [ -n "${SLURM_JOB_ID:-}" ]; then
        CW_ENGINE=slurm
    elif [ -n "${KUBERNETES_SERVICE_HOST:-}" ]; then
        CW_ENGINE=kubernetes
    else
        CW_ENGINE=local
    fi
fi
export CW_NODE CW_NODE_RANK CW_ENGINE

# The time in UTC, with nanoseconds where date(1) knows them: a test may begin and end within one second.
cw_now() {
    now=$(date -u +%Y-%m-%dT%H:%M:%S.%N)
    case ${now#*.} in
    *[!0-9]* | '') date -u +%Y-%m-%dT%H:%M:%SZ ;;
    *) echo "${now}Z" ;;
    esac
}

# Text as it stands between the quotes of a JSON string; control characters are dropped.
cw_json() {
    printf '%s' "$1" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g'
}

cw_driver() {
    if [ -r /proc/driver/nvidia/version ]; then
        sed -n 's/^NVRM version:.* \([0-9][0-9]*\.[0-9][0-9.]*\) .*/\1/p' /proc/driver/nvidia/version | head -n 1
    elif [ -r /sys/module/amdgpu/version ]; then
        cat /sys/module/amdgpu/version
    fi
}

# cw_begin TEST READER SECONDS [FILES]: the directory of this run; earlier ones are kept, never overwritten.
cw_begin() {
    CW_TEST=$1
    CW_READER=$2
    CW_SECONDS=$3
    CW_NODES_OF_RUN=${CW_GROUP:-$CW_NODE}
    base=$CW_RESULTS/$CW_TEST/$CW_UNIT
    if [ -n "$CW_ROLE" ] && [ "$CW_ROLE" != client ]; then
        base=$base.$CW_ROLE
    fi
    CW_OUT=$base
    CW_ATTEMPT=1
    while ! mkdir -p "$(dirname "$base")" || ! mkdir "$CW_OUT" 2>/dev/null; do
        CW_ATTEMPT=$((CW_ATTEMPT + 1))
        CW_OUT=$base.$CW_ATTEMPT
        if [ "$CW_ATTEMPT" -gt 99 ]; then
            echo "clusterwright: $base cannot be created" >&2
            exit 1
        fi
    done
    CW_STORE=
    CW_STARTED=$(cw_now)
    CW_COMMAND=
    CW_FILES=${4:-stdout.txt}
    CW_RIGHTS=user
    CW_CHILD=
    CW_DURING=
    CW_SERVERS=
    export CW_OUT
    trap 'cw_stop HUP 129' HUP
    trap 'cw_stop INT 130' INT
    trap 'cw_stop TERM 143' TERM
}

# cw_stop SIGNAL CODE: ends everything that the test started, and writes down that it was stopped.
cw_stop() {
    trap '' HUP INT TERM
    CW_SIGNAL=$1
    for child in $CW_CHILD $CW_DURING $CW_SERVERS; do
        # `timeout` hands it on to all that it started, and kills what stays. What runs as root is stopped as root.
        if ! kill -TERM "$child" 2>/dev/null && [ -n "${CW_AS_ROOT:-}" ]; then
            $CW_AS_ROOT kill -TERM "$child" 2>/dev/null
        fi
    done
    for child in $CW_CHILD $CW_SERVERS; do
        wait "$child" 2>/dev/null
    done
    cw_record "$2" false ""
    exit "$2"
}

# cw_limited SECONDS FILE COMMAND...: runs it with a limit, its output in the file. A signal to the script ends it, too.
cw_limited() {
    limit=$1
    file=$2
    shift 2
    # shellcheck disable=SC2086  # a command with its options, or nothing
    ${CW_AS_ROOT:-} timeout -k 30 "$limit" "$@" >"$file" 2>>"$CW_OUT/stderr.txt" </dev/null &
    CW_CHILD=$!
    wait "$CW_CHILD"
    code=$?
    CW_CHILD=
    return $code
}

# The test wants the rights of root. CW_SUDO="sudo -n" starts its command so; without it the user's rights are used.
cw_root() {
    CW_RIGHTS=root
}

# cw_record EXIT_CODE TIMED_OUT LACKING: writes run.json.
cw_record() {
    ended=$(cw_now)
    {
        printf '{"format": "clusterwright-run/1", "test": "%s", "reader": "%s", "unit": "%s", ' \
            "$(cw_json "$CW_TEST")" "$(cw_json "$CW_READER")" "$(cw_json "$CW_UNIT")"
        printf '"attempt": %s, "role": "%s", "node": "%s", "nodes": "%s", "engine": "%s", ' \
            "$CW_ATTEMPT" "$(cw_json "$CW_ROLE")" "$(cw_json "$CW_NODE")" "$(cw_json "$CW_NODES_OF_RUN")" \
            "$(cw_json "$CW_ENGINE")"
        printf '"started": "%s", "ended": "%s", "exit_code": %s, "timed_out": %s, "lacking": "%s", ' \
            "$CW_STARTED" "$ended" "$1" "$2" "$(cw_json "$3")"
        printf '"image": "%s", "driver": "%s", "kernel": "%s", "job": "%s", "user": "%s", ' \
            "$(cw_json "${CW_IMAGE:-}")" "$(cw_json "$(cw_driver)")" "$(cw_json "$(uname -r)")" \
            "$(cw_json "${SLURM_JOB_ID:-${CW_JOB:-}}")" "$(cw_json "$(id -un 2>/dev/null || id -u)")"
        if [ -n "${CW_RAILS_EXPECTED:-}" ]; then
            printf '"rails_expected": %s, "rails": "%s", ' "$CW_RAILS_EXPECTED" "$(cw_json "${CW_RAILS_SAID# }")"
        fi
        if [ -n "${CW_SIGNAL:-}" ]; then
            printf '"signal": "%s", ' "$CW_SIGNAL"
        fi
        printf '"command": "%s", "files": "%s"}\n' "$(cw_json "$CW_COMMAND")" "$(cw_json "$CW_FILES")"
    } >"$CW_OUT/run.json"
    if [ -n "$CW_STORE" ]; then
        rm -rf -- "$CW_STORE"
    fi
    echo "clusterwright: $CW_TEST on $CW_UNIT: ${3:-exit code $1}" >&2
    if [ "${CW_PRINT:-}" = 1 ]; then
        cw_print
    fi
}

# Prints every file of the run, for engines that bring back nothing but a log: "| " before each line of a file, then its
# digest, its bytes and whether it ends in a line break. Large files are packed, as logs are rotated. The record comes
# last: a log without it is one of a run that is not over.
cw_print() {
    for file in "$CW_OUT"/*; do
        if [ -f "$file" ] && [ "${file##*/}" != run.json ]; then cw_print_file "$file"; fi
    done
    cw_print_file "$CW_OUT/run.json"
    echo "clusterwright-end"
}

cw_print_file() {
    size=$(wc -c <"$1" | tr -d ' ')
    printf '\nclusterwright-file: %s\n' "${CW_OUT#"$CW_RESULTS"/}/${1##*/}"
    form=plain
    if [ "$size" -gt 262144 ] && command -v gzip >/dev/null 2>&1 && command -v base64 >/dev/null 2>&1; then
        form=gzip
        gzip -c <"$1" | base64 | sed 's/^/| /'
    else
        sed 's/^/| /' <"$1"
    fi
    ending=whole
    if [ "$(tail -c 1 "$1" | wc -l | tr -d ' ')" = 0 ]; then
        ending=open
        echo
    fi
    printf 'clusterwright-sum: %s %s %s %s\n' "$(sha256sum <"$1" | cut -c1-64)" "$size" "$ending" "$form"
}

# Ends a test that cannot run here; it is not measured, which is no failure of the script.
cw_lacking() {
    cw_record null false "$1"
    exit 0
}

cw_need() {
    case $1 in
    gpu)
        for file in /dev/nvidia[0-9]* /dev/kfd; do
            if [ -e "$file" ]; then return; fi
        done
        cw_lacking "no such hardware: no GPU (neither /dev/nvidia0 nor /dev/kfd)"
        ;;
    nvidia-gpu | nvswitch)
        for file in /dev/nvidia[0-9]*; do
            if [ -e "$file" ]; then return; fi
        done
        cw_lacking "no such hardware: no NVIDIA GPU (no /dev/nvidia0)"
        ;;
    amd-gpu)
        if [ ! -e /dev/kfd ]; then cw_lacking "no such hardware: no AMD GPU (no /dev/kfd)"; fi
        ;;
    rdma)
        for file in "${CW_SYSFS:-/sys}"/class/infiniband/*; do
            if [ -e "$file" ]; then return; fi
        done
        cw_lacking "no such hardware: no RDMA device (nothing in /sys/class/infiniband)"
        ;;
    esac
}

cw_tool() {
    if ! command -v "$1" >/dev/null 2>&1; then
        cw_lacking "no such tool: $1 is not installed here"
    fi
}

# cw_store NAME PATH: a directory of our own on the store, removed when the run is over.
cw_store() {
    if [ -z "$2" ]; then
        cw_lacking "not configured: no path for the store $1 in settings.sh"
    fi
    if [ ! -d "$2" ]; then
        cw_lacking "not configured: $2, the path of the store $1, is no directory here"
    fi
    place=$2/clusterwright-$CW_TEST-$CW_NODE-$$
    if ! mkdir "$place" 2>/dev/null; then
        cw_lacking "not configured: $2, the path of the store $1, is not writable here"
    fi
    CW_STORE=$place
}

cw_endpoint() {
    if [ -z "$2" ]; then
        cw_lacking "not configured: no address of $1 in settings.sh"
    fi
    CW_ENDPOINT=$2
    export CW_ENDPOINT
}

# cw_during COMMAND...: repeats a command every minute while the test runs.
cw_during() {
    if ! command -v "$1" >/dev/null 2>&1; then
        return
    fi
    CW_FILES="$CW_FILES during.txt"
    (
        while :; do
            "$@" >>"$CW_OUT/during.txt" 2>/dev/null
            sleep 60
        done
    ) >/dev/null 2>&1 &
    CW_DURING=$!
}

# cw_run COMMAND...: runs it with a limit and records how it ended. 69 means that it found a tool of its own missing.
cw_run() {
    CW_COMMAND=$*
    if [ "$CW_RIGHTS" = root ] && [ -n "${CW_SUDO:-}" ] && [ "$(id -u)" != 0 ]; then
        CW_AS_ROOT=$CW_SUDO
        CW_COMMAND="$CW_SUDO $*"
    fi
    : >"$CW_OUT/stderr.txt"
    cw_limited "$CW_SECONDS" "$CW_OUT/stdout.txt" "$@"
    code=$?
    if [ -n "${CW_DURING:-}" ]; then
        kill "$CW_DURING" 2>/dev/null
    fi
    case $code in
    69) cw_record null false "no such tool: $(tail -n 1 "$CW_OUT/stderr.txt")" ;;
    124 | 137) cw_record $code true "" ;;
    *) cw_record $code false "" ;;
    esac
    exit 0
}

# cw_mpi RANKS PER_NODE COMMAND...: one process per GPU over the nodes of the run.
cw_mpi() {
    ranks=$1
    per_node=$2
    shift 2
    case $CW_ENGINE in
    slurm)
        if [ -z "${CW_SRUN_ARGS:-}" ]; then
            cw_tool "$1"
        fi
        # shellcheck disable=SC2086  # several options
        cw_run srun ${CW_SRUN_ARGS:-} --mpi="${CW_PMI:-pmix}" --ntasks="$ranks" --ntasks-per-node="$per_node" "$@"
        ;;
    *)
        cw_tool "$1"
        cw_tool mpirun
        mpirun=$(command -v mpirun)
        hosts=$(printf '%s' "${CW_HOSTS:-$CW_NODES_OF_RUN}" | sed "s/,/:$per_node,/g; s/\$/:$per_node/")
        set -- -np "$ranks" --host "$hosts" --bind-to none -x PATH -x LD_LIBRARY_PATH "$@"
        for name in $CW_EXPORTED; do
            set -- -x "$name" "$@"
        done
        if [ -n "${CW_SSH_PORT:-}" ]; then
            set -- --mca plm_rsh_args "-p $CW_SSH_PORT -i /tmp/clusterwright-ssh/key -o StrictHostKeyChecking=no" "$@"
        fi
        if [ "$(id -u)" = 0 ]; then
            set -- --allow-run-as-root "$@"
        fi
        cw_run "$mpirun" "$@"
        ;;
    esac
}
CW_EXPORTED=

# cw_set NAME VALUE: a variable of the command, also on other nodes.
cw_set() {
    eval "$1=\$2"
    # shellcheck disable=SC2163
    export "$1"
    CW_EXPORTED="$CW_EXPORTED $1"
}

# cw_rails FUNCTION LAYER RATE COUNT: the function's command once per rail, as server or as client of CW_PEER.
# A rail is a port of an RDMA device with the declared link layer ("" for any); RATE in Gb/s and COUNT are declared, 0
# where the file does not say. CW_RAILS="DEVICE ..." names the devices instead. Both sides know a rail by its device, so
# one that is down on one side moves no other. run.json says of every rail whether it was measured.
cw_rails() {
    if [ "$CW_ROLE" != server ] && [ -z "${CW_PEER:-}" ]; then
        cw_lacking "not configured: no other node to talk to"
    fi
    : >"$CW_OUT/stderr.txt"
    CW_RAILS_EXPECTED=$4
    CW_RAILS_SAID=
    CW_RAIL_WAIT=${CW_RAIL_WAIT:-300}
    CW_SERVERS=
    rails=$(cw_find_rails "$2" "$3" "$4")
    found=$(printf '%s' "$rails" | grep -c .)
    if [ "$found" = 0 ]; then
        cw_lacking "no such hardware: no RDMA port${2:+ of the link layer $2}"
    fi
    if [ "$4" -gt 0 ] && [ "$found" -gt "$4" ]; then
        cw_lacking "not configured: $found RDMA ports here may be the $4 declared rails; name them: CW_RAILS=\"DEVICE ...\""
    fi
    CW_RAIL=0
    worst=0
    CW_FILES=
    for CW_DEVICE in $rails; do
        CW_IB_PORT=${CW_DEVICE#*/}
        CW_DEVICE=${CW_DEVICE%/*}
        CW_PORT=$(cw_tcp_port "$CW_DEVICE" "$CW_IB_PORT")
        CW_RAIL_NAME=$CW_DEVICE
        if [ "$CW_IB_PORT" != 1 ]; then CW_RAIL_NAME=$CW_DEVICE-port-$CW_IB_PORT; fi
        export CW_DEVICE CW_RAIL CW_PORT
        said=measured
        if ! cw_is_active "$CW_DEVICE" "$CW_IB_PORT"; then
            said=not-active
            worst=3
            echo "clusterwright: $CW_RAIL_NAME is not active on $CW_NODE" >>"$CW_OUT/stderr.txt"
        else
            CW_FILES="$CW_FILES rail-$CW_RAIL_NAME.txt"
            "$1"
            code=$?
            if [ "$code" -ne 0 ]; then
                said=failed
                worst=$code
                echo "clusterwright: $CW_RAIL_NAME ended with exit code $code" >>"$CW_OUT/stderr.txt"
            fi
        fi
        CW_RAILS_SAID="$CW_RAILS_SAID $CW_RAIL_NAME=$said"
        CW_RAIL=$((CW_RAIL + 1))
    done
    if [ "$CW_ROLE" = server ]; then cw_wait_for_rails; fi
    if [ "$found" -lt "$4" ]; then
        worst=3
        echo "clusterwright: $4 rails are declared, $CW_NODE has $found" >>"$CW_OUT/stderr.txt"
    fi
    if [ -z "$CW_FILES" ]; then
        cw_lacking "no such hardware: no active RDMA port${2:+ of the link layer $2}"
    fi
    cw_record "$worst" false ""
    exit 0
}

# cw_find_rails LAYER RATE COUNT: DEVICE/PORT of every rail, also of those that are down, in the order of the devices.
cw_find_rails() {
    root=${CW_SYSFS:-/sys}/class/infiniband
    if [ -n "${CW_RAILS:-}" ]; then
        printf '%s' "$CW_RAILS" | tr -s ', ' '\n' | awk 'NF && !seen[$1]++ { print ($1 ~ /\//) ? $1 : $1 "/1" }'
        return
    fi
    ports=$(
        for path in "$root"/*/ports/*; do
            if [ -r "$path/state" ] && { [ -z "$1" ] || [ "$(cat "$path/link_layer" 2>/dev/null)" = "$1" ]; }; then
                device=${path%/ports/*}
                printf '%s/%s\n' "${device##*/}" "${path##*/}"
            fi
        done | sort -V
    )
    # Devices of other networks may have the same link layer: the declared rate tells them apart where all are up.
    if [ "$3" -gt 0 ] && [ "$2" != 0 ] && [ "$(printf '%s' "$ports" | grep -c .)" -gt "$3" ]; then
        kept=
        exact=
        for port in $ports; do
            rate=$(cut -d' ' -f1 <"$root/${port%/*}/ports/${port#*/}/rate" 2>/dev/null)
            if ! cw_is_active "${port%/*}" "${port#*/}"; then
                kept="$kept $port"
            elif [ "$rate" = "$2" ]; then
                kept="$kept $port"
                exact="$exact $port"
            fi
        done
        if [ "$(printf '%s' "$exact" | wc -w)" -eq "$3" ]; then kept=$exact; fi
        ports=$kept
    fi
    printf '%s\n' "$ports" | tr ' ' '\n' | grep .
}

cw_is_active() {
    case $(cat "${CW_SYSFS:-/sys}/class/infiniband/$1/ports/$2/state" 2>/dev/null) in
    *ACTIVE*) return 0 ;;
    esac
    return 1
}

# The TCP port of a rail, the same on both sides: from the numbers in the device's name.
cw_tcp_port() {
    printf '%s %s\n' "$(printf '%s' "$1" | tr -cd '0-9')" "$2" |
        awk '{ print 18515 + (NF > 1 ? $1 % 10000 : 0) + ($NF - 1) * 10000 }'
}

# cw_rail COMMAND...: within cw_rails. Servers of all rails wait at once; the client takes one rail after the other, and
# waits CW_RAIL_WAIT seconds for the first server to appear.
cw_rail() {
    if [ "$CW_IB_PORT" != 1 ]; then set -- "$@" -i "$CW_IB_PORT"; fi
    CW_COMMAND=$*
    file=$CW_OUT/rail-$CW_RAIL_NAME.txt
    if [ "$CW_ROLE" = server ]; then
        timeout -k 10 "$CW_SECONDS" "$@" >"$file" 2>>"$CW_OUT/stderr.txt" &
        CW_SERVERS="$CW_SERVERS $!"
        return 0
    fi
    waited=0
    while :; do
        cw_limited "${CW_RAIL_SECONDS:-90}" "$file" "$@" "$CW_PEER"
        code=$?
        if [ $code -eq 0 ]; then CW_RAIL_WAIT=10; fi
        if [ $code -eq 0 ] || [ $code -eq 124 ] || [ $code -eq 137 ] || [ $waited -ge "$CW_RAIL_WAIT" ]; then
            return $code
        fi
        sleep 5
        waited=$((waited + 5))
    done
}

# Waits for the servers; those that nobody has talked to when no other has ended for CW_RAIL_IDLE seconds are ended.
cw_wait_for_rails() {
    idle=0
    before=0
    while :; do
        left=
        for server in $CW_SERVERS; do
            if kill -0 "$server" 2>/dev/null; then left="$left $server"; fi
        done
        if [ -z "$left" ]; then return; fi
        now=$(printf '%s' "$left" | wc -w)
        idle=$((idle + 2))
        if [ "$now" != "$before" ]; then idle=0; fi
        before=$now
        if [ "$left" != "$CW_SERVERS" ] && [ "$idle" -ge "${CW_RAIL_IDLE:-400}" ]; then
            for server in $left; do kill "$server" 2>/dev/null; done
            echo "clusterwright: nobody talked to $now of the rails" >>"$CW_OUT/stderr.txt"
            return
        fi
        sleep 2
    done
}

# cw_mpi_pod: in a pod, all but the first wait as ssh servers until the first is done. Keys come from a Secret.
cw_mpi_pod() {
    CW_SSH_PORT=2222
    cw_tool mpirun
    if [ ! -x /usr/sbin/sshd ]; then
        cw_lacking "no such tool: /usr/sbin/sshd is not in the image, and MPI needs it between pods"
    fi
    if [ ! -r /etc/clusterwright-ssh/key ]; then
        cw_lacking "not configured: the Secret clusterwright-ssh is not there"
    fi
    mkdir -p /tmp/clusterwright-ssh /run/sshd
    cp /etc/clusterwright-ssh/key /tmp/clusterwright-ssh/key
    cp /etc/clusterwright-ssh/key.pub /tmp/clusterwright-ssh/authorized_keys
    chmod 600 /tmp/clusterwright-ssh/*
    if [ "${JOB_COMPLETION_INDEX:-0}" = 0 ]; then
        for host in $(printf '%s' "$CW_HOSTS" | tr , ' '); do
            tries=0
            until cw_ssh "$host" true 2>/dev/null || [ "$host" = "${CW_HOSTS%%,*}" ]; do
                tries=$((tries + 1))
                if [ $tries -ge 60 ]; then
                    cw_lacking "not run: $host did not answer within 5 minutes"
                fi
                sleep 5
            done
        done
        trap cw_release_pods EXIT
        return
    fi
    rm -rf -- "$CW_OUT"
    /usr/sbin/sshd -D -p "$CW_SSH_PORT" -f /dev/null -h /tmp/clusterwright-ssh/key -o PidFile=none -o StrictModes=no \
        -o AuthorizedKeysFile=/tmp/clusterwright-ssh/authorized_keys &
    server=$!
    trap 'kill "$server"; exit 143' HUP INT TERM # a pod that only waits has no run to write down
    while [ ! -e /tmp/clusterwright-done ]; do sleep 2; done
    kill "$server"
    exit 0
}

cw_ssh() {
    host=$1
    shift
    ssh -p "$CW_SSH_PORT" -i /tmp/clusterwright-ssh/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        -o ConnectTimeout=5 -o BatchMode=yes "$host" "$@"
}

cw_release_pods() {
    for host in $(printf '%s' "$CW_HOSTS" | tr , ' '); do
        if [ "$host" != "${CW_HOSTS%%,*}" ]; then
            cw_ssh "$host" touch /tmp/clusterwright-done 2>/dev/null
        fi
    done
}
