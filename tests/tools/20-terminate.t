#!/usr/bin/env bash
# The same programs where TLS is terminated: they reach what may be asked for, and say what may not.
. tests/tools/fetch.sh

start_tools <<'Y'
limits: { memory: 4G, pids: 2048 }
egress:
  allow:
    - { host: good.example, terminate: true, requests: ["GET /x"] }
    - { host: registry.npmjs.org, terminate: true, requests: ["GET /demo", "GET /demo/-/**"] }
    - { host: pypi.org, terminate: true, requests: ["GET /simple/demo/"] }
    - { host: files.pythonhosted.org, terminate: true, requests: ["GET /demo-*"] }
    - { host: proxy.golang.org, terminate: true, requests: ["GET /example.org/**"] }
    - { host: index.crates.io, terminate: true, requests: ["GET /config.json", "GET /de/mo/demo"] }
    - { host: static.crates.io, terminate: true, requests: ["GET /crates/demo/**"] }
    - { host: github.com, terminate: true, requests: ["GET /demo/**", "POST /demo/*/git-upload-pack",
        "GET /rust-lang/crates.io-index/**", "POST /rust-lang/crates.io-index/git-upload-pack"] }
Y

for tool in curl wget node python git npm pip go cargo; do reaches $tool; done
# refused TOOL WANT COMMAND
refused() { like "$1 says that it was refused" "$(in_jail "$3")" "$2"; }
refused curl 'GET /y is not among the requests allowed for good.example' 'curl -sS https://good.example/y'
refused wget '403' 'wget -t 1 -O- https://good.example/y'
refused node '403' 'node -e "fetch(\"https://good.example/y\").then(r=>console.log(r.status))"'
refused python '403' '/usr/bin/python3 -c "import urllib.request as u; u.urlopen(\"https://good.example/y\")"'
refused git '403' 'git clone https://github.com/other/demo.git'
refused npm '403' 'npm install --no-audit --no-fund --fetch-retries=0 --registry https://registry.npmjs.org other'
refused pip '403|No matching distribution' '/usr/bin/python3 -m pip install --break-system-packages --retries 0 --target t other'
refused go '403' 'mkdir m && cd m && go mod init example.org/m && GONOSUMDB=other.org go get other.org/demo@v1.0.0'
refused cargo '403' 'CARGO_NAME=t cargo init -q --vcs none --name m m && cd m && printf "x = { git = \"https://github.com/other/x\" }\n" >>Cargo.toml && CARGO_NET_RETRY=0 cargo fetch'

# Java has a store of its own, and docs/EGRESS.md says how it learns of the jail's authority.
like 'java does not know the authority' "$(in_jail "${fetch[java]}")" 'unable to find valid certification path'
store='cp /etc/ssl/certs/java/cacerts store
keytool -importcert -noprompt -alias agentbox -file /etc/ssl/certs/agentbox-egress.pem -keystore store -storepass changeit
trust=-Djavax.net.ssl.trustStore=store'
reaches java "$store"
is 'nothing else was asked of anybody' "$(grep -cE 'http (good.example|github.com|registry.npmjs.org|pypi.org) .*(other|/y)' "$NET/log")" 0
finish
