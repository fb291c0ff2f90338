"""The script that brings back what pods printed: their logs are the only way out of a pod.

Each file of a run stands between two marks in the log; the second has its digest, so that a log which was rotated or
cut is noticed. Every pod is a run of its own: a second pod of a test never writes over the first.
"""

from __future__ import annotations

from typing import Final

_FETCH: Final = r"""#!/bin/sh
# Fetches what the pods of the tests printed, and what Kubernetes says about each: node, image, times, exit code.
# May be run again: a pod keeps its directory, another pod of the same test gets one of its own.
# Exit code: 0 everything came back whole; 1 something did not, and it is said what.
set -u
CW_HOME=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
CW_RESULTS=${CW_RESULTS:-$CW_HOME/results}
KUBECTL="kubectl --namespace=@namespace@"
if ! mkdir -p "$CW_RESULTS/pods" || ! work=$(mktemp -d); then
    echo "clusterwright: neither $CW_RESULTS nor a temporary directory can be written" >&2
    exit 1
fi
trap 'rm -rf -- "$work"' EXIT
faults=$work/faults
: >"$faults"

fault() {
    echo "clusterwright: $*" >&2
    echo "$*" >>"$faults"
}

ask() {
    if [ "$1" = json ]; then
        $KUBECTL get pod "$2" -o json
    else
        $KUBECTL logs "$2"
    fi
}

# unpack POD LOG: the files within a log, below $work/tree, and $work/sums with what each should be.
unpack() {
    rm -rf -- "$work/tree"
    mkdir -p "$work/tree" || return 1
    awk -v root="$work/tree" -v sums="$work/sums" '
        function shut() { if (out != "") close(out); out = "" }
        BEGIN { printf "" > sums }
        /^clusterwright-file: / {
            shut()
            path = substr($0, 21)
            if (path !~ /^[A-Za-z0-9_+.-]+\/[A-Za-z0-9_+.-]+\/[A-Za-z0-9_+.-]+$/ || path ~ /(^|\/)\.\.?(\/|$)/) next
            out = root "/" path
            folder = out
            sub(/\/[^\/]*$/, "", folder)
            if (!(folder in made)) {
                made[folder] = 1
                system("mkdir -p \"" folder "\"")
            }
            printf "" > out
            lines = 0
            next
        }
        /^clusterwright-sum: / {
            if (out == "") next
            if ($4 == "whole" && lines > 0) printf "\n" >> out
            shut()
            print $2, $3, $5, path > sums
            next
        }
        /^clusterwright-end$/ { shut(); next }
        /^\| / || /^\|$/ {
            if (out == "") next
            if (lines > 0) printf "\n" >> out
            printf "%s", substr($0, 3) >> out
            lines++
        }
    ' "$2"
}

# check RUN: removes files of a run that did not come back as they were printed, and says so in its record.
check() {
    lost=
    for file in "$work/tree/$1"/*; do
        name=${file##*/}
        line=$(awk -v path="$1/$name" '$4 == path' "$work/sums" | tail -n 1)
        form=$(printf '%s' "$line" | cut -d' ' -f3)
        if [ "$form" = gzip ] && base64 -d <"$file" 2>/dev/null | gzip -dc >"$file.plain" 2>/dev/null; then
            mv -f "$file.plain" "$file"
        fi
        rm -f "$file.plain"
        if [ -z "$line" ] || [ "$(sha256sum <"$file" | cut -c1-64)" != "$(printf '%s' "$line" | cut -d' ' -f1)" ]; then
            rm -f "$file"
            lost="$lost $name"
        fi
    done
    record=$work/tree/$1/run.json
    if [ ! -f "$record" ]; then
        fault "$pod: $1 came back without run.json: the pod is not over, or its log was cut"
        return
    fi
    said=$(sed -n 's/.*"files": "\([^"\\]*\)".*/\1/p' "$record")
    for name in $said; do
        if [ ! -f "$work/tree/$1/$name" ]; then
            case " $lost " in
            *" $name "*) ;;
            *) if grep -q '"lacking": ""' "$record"; then lost="$lost $name"; fi ;;
            esac
        fi
    done
    if [ -n "$lost" ]; then
        fault "$pod: $1 did not come back whole, without:$lost; was the log of the pod rotated?"
        sed "s/\"lacking\": \"\"/\"lacking\": \"did not come back whole from the log of the pod, without:$lost\"/" \
            "$record" >"$record.new" && mv -f "$record.new" "$record"
    fi
}

# keep RUN: moves a run of this pod to a directory that is only its own.
keep() {
    number=1
    goal=$CW_RESULTS/$1
    while [ -e "$goal" ] && [ "$(cat "$goal/pod.txt" 2>/dev/null)" != "$pod" ]; do
        number=$((number + 1))
        goal=$CW_RESULTS/$1.$number
    done
    if [ -f "$goal/run.json" ] && ! grep -q '"lacking": "did not come back whole' "$goal/run.json"; then
        return # this pod was fetched whole before; its log can only have lost something since
    fi
    record=$work/tree/$1/run.json
    if [ -f "$record" ] && [ "$number" -gt 1 ]; then
        sed "s/\"attempt\": [0-9]*,/\"attempt\": $number,/" "$record" >"$record.new" && mv -f "$record.new" "$record"
    fi
    if ! mkdir -p "$goal" || ! echo "$pod" >"$goal/pod.txt" || ! cp "$work/tree/$1"/* "$goal/"; then
        fault "$pod: $goal cannot be written"
    fi
}

if ! $KUBECTL get pods -l @label@ -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}' >"$work/pods"; then
    fault "the pods in the namespace @namespace@ cannot be listed"
fi
while IFS= read -r pod; do
    case $pod in
    '' | *[!A-Za-z0-9.-]*) continue ;;
    esac
    for part in json log; do
        if ! ask $part "$pod" >"$work/new" </dev/null; then
            fault "$pod: kubectl does not give its $part"
        elif [ $part = json ] || [ ! -f "$CW_RESULTS/pods/$pod.log" ] ||
            [ "$(wc -c <"$work/new")" -ge "$(wc -c <"$CW_RESULTS/pods/$pod.log")" ]; then
            cp "$work/new" "$CW_RESULTS/pods/$pod.$part" || fault "$pod: $CW_RESULTS/pods cannot be written"
        fi
    done
    if [ ! -f "$CW_RESULTS/pods/$pod.log" ] || ! unpack "$pod" "$CW_RESULTS/pods/$pod.log"; then
        fault "$pod: nothing can be read from its log"
        continue
    fi
    for folder in "$work/tree"/*/*; do
        if [ -d "$folder" ]; then
            run=${folder#"$work/tree/"}
            check "$run"
            if ls "$folder"/* >/dev/null 2>&1; then keep "$run"; fi
        fi
    done
done <"$work/pods"
if [ -s "$faults" ]; then
    exit 1
fi
"""


def render_fetch(namespace: str, label: str) -> str:
    """The script, for pods with that label."""
    return _FETCH.replace("@namespace@", namespace).replace("@label@", label)
