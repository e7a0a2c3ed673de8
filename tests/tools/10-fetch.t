#!/usr/bin/env bash
# The programs that agents fetch things with, unchanged and with no variable that names a proxy: each
# reaches what its policy allows, and fails at once and readably on what it does not.
. tests/integration/network.sh
. tests/integration/lib.sh

for tool in curl wget node npm python3 pip3 git go cargo javac keytool; do
	command -v $tool >/dev/null || skip_all "needs $tool (tools/deps.sh tools)"
done
hosts='good.example registry.npmjs.org pypi.org files.pythonhosted.org proxy.golang.org github.com index.crates.io static.crates.io'
# shellcheck disable=SC2086 # a list of names
internet $hosts || { echo 'not ok 1 - an internet'; echo 1..1; exit 1; }
python3 tests/tools/packages.py "$NET/srv" || { echo 'not ok 1 - packages'; echo 1..1; exit 1; }
keytool -importcert -noprompt -alias agentbox-test -storepass changeit -file "$NET/cert.pem" \
	-keystore /etc/ssl/certs/java/cacerts >/dev/null 2>&1 || { echo 'not ok 1 - keytool'; echo 1..1; exit 1; }
mkdir -p "$T/etc/policy"
# Java's compiler and cargo's want more memory than a shell.
cat >"$T/etc/policy/build.yaml" <<'Y'
limits: { memory: 4G, pids: 2048 }
egress:
  allow: ["@npm", "@pypi", "@go", "@crates", "@github", good.example, "good.example:80"]
Y
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo 'not ok 1 - start'; echo 1..1; exit 1; }

in_jail() { abctl jail --policy build -- sh -c "exec 2>&1
cd \$HOME
$1" 2>/dev/null; }
# reaches TOOL WANT COMMAND
reaches() { like "$1 reaches what it may" "$(in_jail "$3")" "$2"; }
# refused TOOL WANT SECONDS-OF-ITS-OWN COMMAND: the refusal itself takes less than 100 ms (measured for
# the name in 32-egress.t); a tool that tries several times has its own patience
refused() {
	local out start=$EPOCHREALTIME
	out=$(in_jail "$4")
	like "$1 says what was refused" "$out" "$2"
	ok "$1 does not hang" test "$(((${EPOCHREALTIME/./} - ${start/./}) / 1000000))" -lt "$3"
}

reaches curl 'hello from good' 'curl -sS https://good.example/x'
reaches 'curl by http' 'hello from good' 'curl -sS http://good.example/x'
refused curl 'Could not resolve host: evil.example' 20 'curl -sS https://evil.example/x'
reaches wget 'hello from good' 'wget -qO- https://good.example/x'
refused wget 'unable to resolve|failed' 20 'wget -t 1 -O- https://evil.example/x'
reaches node 'hello from good' 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt node -e "fetch(\"https://good.example/x\").then(r=>r.text()).then(console.log)"'
refused node 'ENOTFOUND|EREFUSED|EAI_AGAIN' 20 'node -e "fetch(\"https://evil.example/x\").catch(e=>console.log(e.cause.code))"'
reaches python 'hello from good' '/usr/bin/python3 -c "import urllib.request as u; print(u.urlopen(\"https://good.example/x\").read().decode())"'
refused python 'Errno -[0-9]' 20 '/usr/bin/python3 -c "import urllib.request as u; u.urlopen(\"https://evil.example/x\")"'
reaches git 'demo of git' 'git clone -q https://github.com/demo/demo.git && cat demo/README'
refused git 'Could not resolve host: evil.example' 20 'git clone https://evil.example/a/b'
reaches npm 'demo of npm' 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt npm install --no-audit --no-fund --registry https://registry.npmjs.org demo && node -p "require(\"demo\")"'
refused npm 'ENOTFOUND|EREFUSED|EAI_AGAIN' 60 'npm install --no-audit --no-fund --fetch-retries=0 --registry https://evil.example demo'
reaches pip 'demo of pip' '/usr/bin/python3 -m pip install -q --break-system-packages --target t demo && PYTHONPATH=t /usr/bin/python3 -c "import demo; print(demo.text)"'
refused pip 'Name or service not known|NameResolutionError|Failed to establish|Temporary failure' 60 '/usr/bin/python3 -m pip install --break-system-packages --retries 1 --target t --index-url https://evil.example/simple demo'
reaches go 'demo of go' 'mkdir m && cd m && go mod init example.org/m && printf "package main\nimport \"example.org/demo\"\nfunc main() { println(demo.Text) }\n" >main.go && GONOSUMDB=example.org go get example.org/demo@v1.0.0 && go run .'
refused go 'evil.example' 60 'mkdir m && cd m && go mod init example.org/m && GOPROXY=https://evil.example GONOSUMDB=example.org go get example.org/demo@v1.0.0'
reaches cargo 'demo of cargo' 'CARGO_NAME=t cargo init -q --vcs none --name m m && cd m && printf "demo = \"1\"\n" >>Cargo.toml && printf "fn main() { println!(\"{}\", demo::TEXT); }\n" >src/main.rs && cargo run -q'
refused cargo 'evil.example' 60 'cargo init -q --vcs none --name m m && cd m && printf "x = { git = \"https://evil.example/x\" }\n" >>Cargo.toml && CARGO_NET_RETRY=0 cargo fetch'
java='cat >Fetch.java <<J
public class Fetch { public static void main(String[] a) throws Exception {
  var c = java.net.http.HttpClient.newHttpClient();
  System.out.println(c.send(java.net.http.HttpRequest.newBuilder(java.net.URI.create(a[0])).build(),
    java.net.http.HttpResponse.BodyHandlers.ofString()).body()); } }
J
$(readlink -f $(command -v java)) Fetch.java'
reaches java 'hello from good' "$java https://good.example/x"
refused java 'ConnectException|UnresolvedAddress|UnknownHost' 60 "$java https://evil.example/x"
is 'nobody outside heard of the refused name' "$(queries evil.example)" 0
finish
