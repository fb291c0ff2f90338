#!/bin/sh
# Gathers everything that the tests wrote into one archive with a manifest: which file, of which run, with its digest.
# Usage: sh collect.sh        writes results/manifest.json and results.tar.gz beside this script
set -u
CW_HOME=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
CW_RESULTS=${CW_RESULTS:-$CW_HOME/results}
mkdir -p "$CW_RESULTS"
if [ -f "$CW_HOME/fetch.sh" ]; then
    sh "$CW_HOME/fetch.sh"
fi
cp "$CW_HOME/plan.json" "$CW_RESULTS/plan.json"
cd "$CW_RESULTS" || exit 1
rm -f manifest.json
list=$(mktemp)
find . -type f ! -name manifest.json | LC_ALL=C sort >"$list"
{
    printf '{"format": "clusterwright-results/1", "collected": "%s", "runs": [\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    comma=
    while IFS= read -r file; do
        case $file in
        */run.json)
            printf '%s' "$comma"
            head -n 1 "$file" | tr -d '\n'
            comma=',
'
            ;;
        esac
    done <"$list"
    printf '\n], "files": [\n'
    comma=
    while IFS= read -r file; do
        name=$(printf '%s' "${file#./}" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')
        sum=$(sha256sum <"$file" | cut -c1-64)
        size=$(wc -c <"$file" | tr -d ' ')
        printf '%s{"path": "%s", "sha256": "%s", "bytes": %s}' "$comma" "$name" "$sum" "$size"
        comma=',
'
    done <"$list"
    printf '\n]}\n'
} >manifest.json
rm -f "$list"
cd "$CW_HOME" || exit 1
tar -czf results.tar.gz -C "$(dirname "$CW_RESULTS")" "$(basename "$CW_RESULTS")"
echo "clusterwright: $CW_RESULTS/manifest.json and $CW_HOME/results.tar.gz" >&2
