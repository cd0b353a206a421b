#!/bin/sh
# Installs outlast @VERSION@ for this user, or removes it:
#   curl -fsSL @RELEASE@/install.sh | sh
#   curl -fsSL @RELEASE@/install.sh | sh -s -- --uninstall
# OUTLAST_INSTALL_DIR: where to (default: ~/.local/bin). OUTLAST_DOWNLOAD_URL: from where.
set -eu

version=@VERSION@
from=${OUTLAST_DOWNLOAD_URL:-@RELEASE@}
to=${OUTLAST_INSTALL_DIR:-${HOME:?}/.local/bin}
key=@MINISIGN_KEY@

fail() {
  printf 'error: %s\n\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

target() {
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) echo x86_64-unknown-linux-gnu ;;
    Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-gnu ;;
    Darwin-arm64) echo aarch64-apple-darwin ;;
    Darwin-x86_64) echo x86_64-apple-darwin ;;
    *) fail "there is no binary for $(uname -s) on $(uname -m)" "build it: cargo install --locked --git @REPOSITORY@ outlast" ;;
  esac | if ldd --version 2>&1 | grep -qi musl; then sed s/gnu/musl/; else cat; fi
}

get() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --proto '=https,http,file' -o "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1"
  else
    fail "neither curl nor wget is here" "install one of them"
  fi || fail "$1 cannot be downloaded" "check the network, or set OUTLAST_DOWNLOAD_URL"
}

sum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

if [ "${1:-}" = --uninstall ]; then
  rm -f "$to/outlast"
  echo "removed $to/outlast; jobs and settings are kept (\`outlast config show\` named their places)"
  exit
fi

name=outlast-$version-$(target)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
get "$from/SHA256SUMS" "$work/SHA256SUMS"
if [ -n "$key" ] && command -v minisign >/dev/null 2>&1; then
  get "$from/SHA256SUMS.minisig" "$work/SHA256SUMS.minisig"
  minisign -Vqm "$work/SHA256SUMS" -P "$key" || fail "the signature of SHA256SUMS is wrong" "do not use these files"
fi
get "$from/$name.tar.gz" "$work/$name.tar.gz"
wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name.tar.gz\$/\1/p" "$work/SHA256SUMS")
[ -n "$wanted" ] || fail "SHA256SUMS does not name $name.tar.gz" "this release has no binary for this machine"
[ "$(sum "$work/$name.tar.gz")" = "$wanted" ] || fail "$name.tar.gz is not the file that was released" "try again; if it happens twice, report it"
tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$to"
# Moved, because a running program cannot be overwritten.
cp "$work/$name/outlast" "$to/outlast.new"
mv -f "$to/outlast.new" "$to/outlast"
echo "installed $("$to/outlast" --version) in $to"
case :$PATH: in *":$to:"*) ;; *) echo "add $to to your PATH" ;; esac
echo "next: outlast init claude-code, or outlast --help"
