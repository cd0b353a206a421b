# For scripts/interop, scripts/replicas, scripts/conformance, scripts/bench, scripts/ui and scripts/app: clients and servers to try outlast with.
# Everything is kept in target/interop; what cannot be had is an error, never a check that is skipped, but for `packages_or_skip`.

node_version=22.23.3 # for the conformance runner, where the system's own is older
kept=$PWD/target/interop
started=()

fail() {
  echo "error: $1" >&2
  echo >&2
  echo "hint: $2" >&2
  exit 1
}

# Nothing of this machine's configuration may reach the servers.
forget_configuration() {
  local name
  for name in $(compgen -e | grep -E '^(PERPLEXITY_|OPENAI_|ANTHROPIC_|GEMINI_|OUTLAST_)' || true); do unset "$name"; done
  # These scripts kill servers and count what each left; a worker that outlives its server is tried by the tests.
  export OUTLAST_DETACH=false
}

# Ends what was started here, whatever happened.
end_servers() {
  [ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}

begin() {
  work=$(mktemp -d)
  trap end_servers EXIT
  mkdir -p "$kept"
}

# start NAME PATTERN COMMAND...: waits until its output matches; what matched is in $found.
start() {
  local name=$1 pattern=$2 tries=0
  shift 2
  : >"$work/$name.log"
  "$@" >"$work/$name.log" 2>&1 </dev/null &
  started+=($!)
  until found=$(grep -oE "$pattern" "$work/$name.log" | head -1) && [ -n "$found" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 150 ] || ! kill -0 $! 2>/dev/null; then
      cat "$work/$name.log" >&2
      fail "$name did not start" "the log above says why"
    fi
    sleep 0.1
  done
}

need_npm() {
  command -v npm >/dev/null 2>&1 || fail "npm is missing" "install Node.js 20 or newer"
}

# packages FOLDER: installs what interop/FOLDER/package-lock.json pins.
packages() {
  local from=interop/$1 to=$kept/$1
  need_npm
  if ! cmp -s "$from/package-lock.json" "$to/installed"; then
    rm -rf "$to"
    mkdir -p "$to"
    cp "$from/package.json" "$from/package-lock.json" "$to/"
    (cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=60000 >"$to/install.log" 2>&1) || {
      tail -5 "$to/install.log" >&2
      fail "the packages of $from cannot be installed" "the npm registry must be within reach"
    }
    cp "$from/package-lock.json" "$to/installed"
  fi
}

# packages_or_skip FOLDER SHORT: with `--short`, which scripts/test runs, an npm registry out of reach is said and ends the script.
packages_or_skip() {
  if [ "$2" != --short ]; then
    packages "$1"
  elif ! (packages "$1"); then
    echo "SKIPPED: $0 needs the packages of interop/$1 and could not get them; what it checks was not checked" >&2
    exit 0
  fi
}

# A Chromium, in $browser.
need_browser() {
  browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
  [ -n "$browser" ] || fail "no Chromium is here" "apt-get install chromium, or name one in CHROMIUM"
}

# A Node.js that is new enough, in $node: the system's, or one from the registry.
need_node_22() {
  need_npm
  node=$(command -v node)
  [ "$("$node" -p 'parseInt(process.versions.node) >= 22')" = true ] && return
  local name to=$kept/node-$node_version
  name=node-$("$node" -p 'process.platform + "-" + process.arch')
  node=$to/node_modules/$name/bin/node
  if ! "$node" --version >/dev/null 2>&1; then
    mkdir -p "$to"
    npm install --prefix "$to" --no-save --ignore-scripts --no-audit --no-fund "$name@$node_version" \
      >"$to/install.log" 2>&1 || {
      tail -5 "$to/install.log" >&2
      fail "Node.js $node_version cannot be installed" "the npm registry must be within reach, or install Node.js 22"
    }
  fi
}

# need_python NAME [FILE]: a Python with what FILE, or else interop/NAME/requirements.txt, pins, in $python.
need_python() {
  local from=${2:-interop/$1/requirements.txt} to=$kept/$1-python
  command -v python3 >/dev/null 2>&1 || fail "python3 is missing" "install Python 3.11 or newer"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "python3 is too old" "install Python 3.11 or newer"
  python=$to/bin/python
  if ! cmp -s "$from" "$to/installed"; then
    rm -rf "$to"
    python3 -m venv "$to" || fail "no virtual environment can be made" "on Debian: apt-get install python3-venv"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$from" >"$to/install.log" 2>&1 || {
      tail -5 "$to/install.log" >&2
      fail "the packages of $from cannot be installed" "the Python package index must be within reach"
    }
    cp "$from" "$to/installed"
  fi
}

# print_rows FILE: the lines of clients (client, transport, era, check, outcome) as a table; fails where one lacks a check.
print_rows() {
  awk -F '\t' '
    {
      run = $1 "\t" $2 "\t" $3
      check = $4 ~ /task/ ? "task (in the old era: none)" : $4
      if (!(run in seen)) { seen[run] = 1; runs[++r] = run }
      if (!(check in known)) { known[check] = 1; checks[++c] = check }
      cell[run, check] = $5 == "ok" ? "ok" : "FAIL"
      if ($5 != "ok") problems = problems "\n" $0
    }
    END {
      for (line = 1; line <= 3; line++) {
        printf "%-30s", ""
        for (i = 1; i <= r; i++) { split(runs[i], part, "\t"); printf "%-12s", part[line] }
        print ""
      }
      for (j = 1; j <= c; j++) {
        printf "%-30s", checks[j]
        for (i = 1; i <= r; i++) {
          it = cell[runs[i], checks[j]]
          if (it == "") { it = "-"; missing++ }
          printf "%-12s", it
        }
        print ""
      }
      print problems
      exit missing > 0
    }' "$1"
}
