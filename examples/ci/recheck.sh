#!/bin/sh
# Re-checks recorded runs under a policy, with curl alone, and fails where a decision would have been another one.
#
#     export RUNSEAL_URL=https://log.example  RUNSEAL_API_KEY=...   # a key with the scope recheck
#     sh recheck.sh POLICY.json PRINCIPAL RUN [RUN...]
#
# GATE=strict (the default) lets nothing differ and nothing be left out; GATE=proxy lets pass what can't be re-checked.
# FORMAT=text (the default), markdown, junit or json is what is printed for each run.
#
# Exit codes: 0 every run passes; 1 one does not, or is not there; 2 usage, a wrong key, or no answer.
set -eu

if [ $# -lt 3 ]; then
  echo "usage: sh recheck.sh POLICY.json PRINCIPAL RUN [RUN...]" >&2
  exit 2
fi
policy=$1
principal=$2
shift 2
[ -r "$policy" ] || {
  echo "$policy can't be read" >&2
  exit 2
}
: "${RUNSEAL_URL:?is not set}" "${RUNSEAL_API_KEY:?is not set}"

umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# The key goes into a file that is ours alone: on a command line every process could read it.
printf 'header = "authorization: Bearer %s"\n' "$RUNSEAL_API_KEY" >"$work/auth"
{
  printf '{"policy":{"rules":'
  cat "$policy"
  printf '}}'
} >"$work/body"

worst=0
for run in "$@"; do
  url="$RUNSEAL_URL/v1/principals/$principal/runs/$run/recheck"
  # verified=true: the service first verifies that what it re-checks is what was logged.
  query="gate=${GATE:-strict}&format=${FORMAT:-text}&verified=true"
  status=$(curl --silent --show-error --config "$work/auth" --header 'content-type: application/json' \
    --data-binary "@$work/body" --output "$work/report" --write-out '%{http_code}' \
    --retry 3 --max-time 120 "$url?$query") || status=000
  case $status in
    200)
      cat "$work/report"
      ;;
    409)
      cat "$work/report"
      echo "run $run does not pass" >&2
      [ "$worst" -gt 1 ] || worst=1
      ;;
    404)
      # A run that is not there proves nothing.
      echo "run $run of $principal is not there" >&2
      [ "$worst" -gt 1 ] || worst=1
      ;;
    *)
      [ "$status" = 000 ] || cat "$work/report" >&2
      echo "run $run: no report, HTTP status $status" >&2
      worst=2
      ;;
  esac
done
exit "$worst"
