#!/usr/bin/env bash
# Artifacts as downloads: parts of them, names that an agent has chosen, connections that are cut, and
# bytes that are not those of the list.
. tests/integration/lib.sh
. tests/integration/runs.sh

# shellcheck disable=SC2016 # it is the jail's shell that expands it
script makes 'mkdir -p out/deep out/.git; seq 60000 >out/big.txt; : >out/empty; echo "<b>" >out/page.html;
	echo deep >out/deep/x; echo hook >out/.git/config;
	echo odd >"$(printf "out/a\"; filename=x\r\nSet-Cookie: y")"; echo bidi >"$(printf "out/\342\200\256fdp.exe")"; echo -- >out/-rf' \
	'artifacts: [out/**]'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
run=$(abctl run makes -s u/g -p x --json | json l.run)
at=http://x/v1/runs/$run/artifacts
get() { rm -f "$T/body"; curl -sS --unix-socket "$T/sock" -o "$T/body" -D "$T/head" "$@"; }
status() { head -n 1 "$T/head" | tr -d '\r'; }
header() { tr -d '\r' <"$T/head" | sed -n "s/^$1: //ip"; }

# ---- over HTTP ----
seq 60000 >"$T/big"
sum=$(sha256sum <"$T/big" | cut -d' ' -f1)
size=$(stat -c %s "$T/big")
get "$at/out/big.txt"
ok 'all of it' cmp "$T/big" "$T/body"
is 'its digest is its ETag' "$(header ETag)" "\"$sum\""
is 'of a type by its name' "$(header Content-Type)" 'text/plain; charset=utf-8'
is 'to be saved' "$(header Content-Disposition)" "attachment; filename=\"big.txt\"; filename*=UTF-8''big.txt"
get "$at/out/page.html"
is 'a page is never one of ours' "$(header Content-Type) $(header X-Content-Type-Options) $(header Content-Security-Policy) $(header Content-Disposition | cut -c1-10)" \
	"text/html; charset=utf-8 nosniff sandbox; default-src 'none' attachment"
get -I "$at/out/big.txt"
is 'HEAD says the same without the bytes' "$(status)|$(header Content-Length)|$(header ETag)|$(header Accept-Ranges)" "HTTP/1.1 200 OK|$size|\"$sum\"|bytes"
get -r 10-19 "$at/out/big.txt"
is 'a part' "$(status)|$(header Content-Range)|$(header Content-Length)" "HTTP/1.1 206 Partial Content|bytes 10-19/$size|10"
is 'is those bytes' "$(cat "$T/body")" "$(tail -c +11 "$T/big" | head -c 10)"
get -r -5 "$at/out/big.txt"
is 'the end of it' "$(cat "$T/body")" "$(tail -c 5 "$T/big")"
get -r "$size-" "$at/out/big.txt"
is 'nothing of it' "$(status)|$(header Content-Range)" "HTTP/1.1 416 Range Not Satisfiable|bytes */$size"
get -r 0-0 "$at/out/empty"
is 'nor of an empty one' "$(status)|$(header Content-Range)" 'HTTP/1.1 416 Range Not Satisfiable|bytes */0'
get -r 0-4 -H "If-Range: \"$sum\"" "$at/out/big.txt"
is 'a part of what it was' "$(status)" 'HTTP/1.1 206 Partial Content'
get -r 0-4 -H 'If-Range: "other"' "$at/out/big.txt"
is 'all of what it was not' "$(status)|$(header Content-Length)" "HTTP/1.1 200 OK|$size"
get -H "If-None-Match: \"$sum\"" "$at/out/big.txt"
is 'nothing where it is known' "$(status)|$(stat -c %s "$T/body" 2>/dev/null || echo 0)" 'HTTP/1.1 304 Not Modified|0'
get "$at/out/a%22%3B%20filename%3Dx%0D%0ASet-Cookie%3A%20y"
is 'a name cannot add a header' "$(cat "$T/body")|$(header Set-Cookie)|$(header Content-Disposition)" \
	"odd||attachment; filename=\"a__ filename_x__Set-Cookie_ y\"; filename*=UTF-8''a_%3B%20filename%3Dx__Set-Cookie_%20y"
get "$at/out/%E2%80%AEfdp.exe"
is 'nor turn what is read' "$(cat "$T/body")|$(header Content-Disposition)" "bidi|attachment; filename=\"_fdp.exe\"; filename*=UTF-8''_fdp.exe"
get "$at/out/.git/config"
is 'nor be hidden' "$(cat "$T/body")" hook

# ---- abctl, with something in between ----
mkdir "$T/way"
python3 tests/integration/meddler.py "$T/way/sock" "$T/sock" "$T/way" &
meddler=$!
wait_for 10 test -S "$T/way/sock"
via() { "$BIN/abctl" --socket "$T/way/sock" artifacts "$run" "$@" 2>"$T/err"; }
mode() { echo "$1" >"$T/way/mode"; : >"$T/way/asked"; }
parts() { find "$1" -name '*.part' | wc -l; }
asked() { grep -o 'Range: .*\|all$' "$T/way/asked" | tail -n 1; }
code() { "$@" >/dev/null; echo $?; }

mkdir "$T/to"
mode cut
is 'a cut download' "$(code via get out/big.txt -o "$T/to/big")" 111
like 'says how to go on' "$(cat "$T/err")" "[0-9]+ of $size bytes are there: the same command goes on"
ok 'leaves nothing under its name' not test -e "$T/to/big"
had=$(find "$T/to" -name '*.part' -size +0 -printf %s)
kill_child agentbox-supervisor
mode pass
is 'goes on, also after the death of the supervisor' "$(code via get out/big.txt -o "$T/to/big")" 0
is 'from there' "$(asked)" "Range: bytes=$had-"
ok 'and is whole' cmp "$T/big" "$T/to/big"
is 'with no part left' "$(parts "$T/to")" 0
mode pass
is 'one that is there and right' "$(code via get out/big.txt -o "$T/to/big")" 0
is 'is not fetched' "$(grep -c 'artifacts/' "$T/way/asked")" 0
echo other >"$T/to/big"
is 'one that is not' "$(code via get out/big.txt -o "$T/to/big")" 0
ok 'is replaced' cmp "$T/big" "$T/to/big"

part=$T/to/.agentbox-${sum:0:32}.part
head -c 1000 /dev/zero >"$part"
rm "$T/to/big"
mode pass
is 'a part that is of something else' "$(code via get out/big.txt -o "$T/to/big")" 0
ok 'is found out' cmp "$T/big" "$T/to/big"
is 'and all of it fetched' "$(asked)" all
head -c 1000 "$T/big" >"$part"
rm "$T/to/big"
mode ignore
is 'a server that knows no parts' "$(code via get out/big.txt -o "$T/to/big")" 0
ok 'gives all of it' cmp "$T/big" "$T/to/big"
rm "$T/to/big"
echo precious >"$T/precious"
ln -s "$T/precious" "$part"
is 'a link in its place' "$(code via get out/big.txt -o "$T/to/big")" 100
is 'is not written through' "$(cat "$T/precious")" precious
rm "$part"

mode flip
is 'other bytes' "$(code via get out/big.txt -o "$T/to/big")" 111
like 'are told' "$(cat "$T/err")" 'what came is not what the run has kept as out/big.txt'
is 'and none are left' "$(find "$T/to" -type f | wc -l)" 0
is 'to stdout, too' "$(code via get out/big.txt -o -)" 111
mode pass
is 'right ones to stdout' "$(via get out/big.txt | sha256sum | cut -d' ' -f1)" "$sum"
is 'an empty one' "$(code via get out/empty -o "$T/to/empty")$(stat -c %s "$T/to/empty")" 00

# ---- all of them ----
mode cut
is 'all of them, cut' "$(code via get --all -o "$T/all")" 111
ok 'are not there' not test -e "$T/all"
had=$(find "$T/all.$run.part/out" -name '.agentbox-*' -printf %s)
mode pass
like 'go on' "$(via get --all -o "$T/all/")" '^8 files, [0-9]+ bytes$'
is 'from there' "$(grep -o 'Range: .*' "$T/way/asked")" "Range: bytes=$had-"
ok 'and are whole' cmp "$T/big" "$T/all/out/big.txt"
is 'each by its name' "$(cat "$T/all/out/-rf" "$T/all/out/deep/x" "$T/all/out/.git/config" | tr '\n' ' ')" '-- deep hook '
is 'and no other' "$(find "$T/all" -type f -printf x | wc -c) $(find "$T" -maxdepth 1 -name 'all*' | wc -l)" '8 1'
via get --tar -o "$T/all.tar"
ok 'as an archive' test -s "$T/all.tar"
mkdir "$T/again" && tar -xf "$T/all.tar" -C "$T/again"
ok 'that has the same' diff -r "$T/all" "$T/again"
is 'to stdout, too' "$(via get --tar | cksum)" "$(cksum <"$T/all.tar")"
mode flip
is 'but none with other bytes' "$(code via get --tar -o "$T/all2.tar")$(find "$T" -name 'all2*' | wc -l)" 1110
mode pass
mkdir "$T/home"
echo mine >"$T/home/.bashrc"
is 'not among other files' "$(code via get --all -o "$T/home")$(find "$T/home" | wc -l)" 1002
mkdir "$T/empty"
is 'an empty directory is as good as none' "$(code via get --all -o "$T/empty")$(find "$T/empty" -type f -printf x | wc -c)" 08
none=$(sha256sum </dev/null | cut -d' ' -f1)
for name in ../evil /tmp/evil out/../../evil out//x . '' out/./x; do
	printf '{"artifacts":[{"path":"%s","bytes":0,"sha256":"%s"}]}\n' "$name" "$none" >"$T/way/list"
	is "a list with '$name'" "$(code via get --all -o "$T/led")$(find "$T" -name 'evil*' | wc -l)$(test -e "$T/led" && echo there)" 1110
done
echo '{"artifacts":[{"path":"x","bytes":1,"sha256":"../../x"}]}' >"$T/way/list"
is 'a digest that is a path' "$(code via get x -o "$T/to/x")" 111
rm "$T/way/list"
kill "$meddler"
finish
