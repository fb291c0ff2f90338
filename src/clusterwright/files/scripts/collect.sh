#!/bin/sh
# Gathers everything that the tests wrote into one archive with a manifest: which file, of which run, with its digest.
# Usage: sh collect.sh        writes results/manifest.json and results.tar.gz beside this script
# Exit code: 0 everything was packed; 1 something was not, and it is said what. Records of runs that were cut are named.
set -u
CW_HOME=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
CW_RESULTS=${CW_RESULTS:-$CW_HOME/results}
pair='"[a-z_]+": ("([^"\\[:cntrl:]]|\\["\\])*"|-?[0-9]+|null|true|false)'
CW_RECORD="\\{($pair, )*$pair\\}"
code=0
list=

fail() {
    echo "clusterwright: not collected: $*" >&2
    rm -f -- "$list" "$CW_RESULTS/manifest.json.new" "$CW_HOME/results.tar.gz.new"
    exit 1
}

escaped() {
    printf '%s' "$1" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g'
}

# fault_of FILE: why it is not the whole record of a run, nothing when it is.
fault_of() {
    if [ ! -s "$1" ]; then
        echo "empty: the run was cut, or the disk was full"
    elif [ "$(wc -l <"$1" | tr -d ' ')" != 1 ] || ! LC_ALL=C grep -Eqx "$CW_RECORD" "$1"; then
        echo "not one whole record: the run was cut, or the file was changed"
    elif command -v iconv >/dev/null 2>&1 && ! iconv -f UTF-8 -t UTF-8 <"$1" >/dev/null 2>&1; then
        echo "not UTF-8"
    fi
}

# records good|bad: the records of all runs, or those that cannot be read with the reason, as items of JSON.
records() {
    comma=
    while IFS= read -r file; do
        case $file in
        */run.json) ;;
        *) continue ;;
        esac
        reason=$(fault_of "$file")
        if [ "$1" = good ] && [ -z "$reason" ]; then
            printf '%s%s' "$comma" "$(cat "$file")" || return 1
        elif [ "$1" = bad ] && [ -n "$reason" ]; then
            echo "clusterwright: ${file#./} is $reason" >&2
            name=$(escaped "${file#./}")
            printf '%s{"path": "%s", "reason": "%s"}' "$comma" "$name" "$reason" || return 1
        else
            continue
        fi
        comma=',
'
    done <"$list"
}

digests() {
    comma=
    while IFS= read -r file; do
        name=$(escaped "${file#./}")
        sum=$(sha256sum <"$file" | cut -c1-64)
        size=$(wc -c <"$file" | tr -d ' ')
        if [ -z "$sum" ]; then return 1; fi
        printf '%s{"path": "%s", "sha256": "%s", "bytes": %s}' "$comma" "$name" "$sum" "$size" || return 1
        comma=',
'
    done <"$list"
}

manifest() {
    printf '{"format": "clusterwright-results/1", "collected": "%s", "runs": [\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" &&
        records good && printf '\n], "faults": [\n' && records bad && printf '\n], "files": [\n' && digests &&
        printf '\n]}\n'
}

mkdir -p "$CW_RESULTS" || fail "$CW_RESULTS cannot be created"
if [ -f "$CW_HOME/fetch.sh" ] && ! sh "$CW_HOME/fetch.sh"; then
    echo "clusterwright: not everything was fetched; what there is gets packed" >&2
    code=1
fi
cp "$CW_HOME/plan.json" "$CW_RESULTS/plan.json" || fail "$CW_RESULTS/plan.json cannot be written"
cd "$CW_RESULTS" || fail "$CW_RESULTS cannot be entered"
rm -f manifest.json manifest.json.new
list=$(mktemp) || fail "no temporary file can be written"
if ! find . -type f ! -name manifest.json ! -name manifest.json.new >"$list.all" || ! LC_ALL=C sort "$list.all" >"$list"; then
    rm -f "$list.all"
    fail "the files in $CW_RESULTS cannot be listed"
fi
rm -f "$list.all"
manifest >manifest.json.new || fail "$CW_RESULTS/manifest.json cannot be written, or a file not be read"
if [ "$(tail -n 1 manifest.json.new)" != ']}' ] ||
    [ "$(grep -c '^{"path": .*"sha256": "' manifest.json.new)" != "$(wc -l <"$list" | tr -d ' ')" ]; then
    fail "$CW_RESULTS/manifest.json is not whole; is the disk full?"
fi
mv -f manifest.json.new manifest.json || fail "$CW_RESULTS/manifest.json cannot be written"
rm -f "$list"
cd "$CW_HOME" || fail "$CW_HOME cannot be entered"
rm -f results.tar.gz
tar -czf results.tar.gz.new -C "$(dirname "$CW_RESULTS")" "$(basename "$CW_RESULTS")" ||
    fail "$CW_HOME/results.tar.gz cannot be written; is the disk full? The files are in $CW_RESULTS"
mv -f results.tar.gz.new results.tar.gz || fail "$CW_HOME/results.tar.gz cannot be written"
echo "clusterwright: $CW_RESULTS/manifest.json and $CW_HOME/results.tar.gz" >&2
exit $code
