# shellcheck shell=bash
# fetch.sh - the programs that agents fetch things with, and small packages for each: sourced first.
#
#	. tests/tools/fetch.sh
#	start_tools <policy.yaml	an internet with the packages, a daemon with that as policy `build`
#	reaches TOOL			it gets its package, or page
#	in_jail COMMAND			what it says, both streams
. tests/integration/network.sh
. tests/integration/lib.sh

for tool in curl wget node npm python3 pip3 git go cargo javac keytool; do
	command -v $tool >/dev/null || skip_all "needs $tool (tools/deps.sh tools)"
done

_start_tools() {
	# shellcheck disable=SC2046 # a list of names
	internet good.example registry.npmjs.org pypi.org files.pythonhosted.org proxy.golang.org github.com index.crates.io \
		static.crates.io &&
		python3 tests/tools/packages.py "$NET/srv" &&
		keytool -importcert -noprompt -alias agentbox-test -storepass changeit -file "$NET/cert.pem" \
			-keystore /etc/ssl/certs/java/cacerts >/dev/null 2>&1 &&
		mkdir -p "$T/etc/policy" &&
		cat >"$T/etc/policy/build.yaml" &&
		: >"$T/etc/agentboxd.yaml" &&
		start_daemon --config "$T/etc/agentboxd.yaml"
}
start_tools() { _start_tools || { echo 'not ok 1 - an internet with packages, and a daemon'; echo 1..1; exit 1; }; }

in_jail() { abctl jail --policy build -- sh -c "exec 2>&1
cd \$HOME
$1" 2>/dev/null; }

java='cat >Fetch.java <<J
public class Fetch { public static void main(String[] a) throws Exception {
  var c = java.net.http.HttpClient.newHttpClient();
  System.out.println(c.send(java.net.http.HttpRequest.newBuilder(java.net.URI.create(a[0])).build(),
    java.net.http.HttpResponse.BodyHandlers.ofString()).body()); } }
J
$(readlink -f $(command -v java)) $trust Fetch.java'

# What each of them is asked to do, and what it then says.
declare -A fetch=(
	[curl]='curl -sS https://good.example/x'
	[wget]='wget -qO- https://good.example/x'
	[node]='node -e "fetch(\"https://good.example/x\").then(r=>r.text()).then(console.log)"'
	[python]='/usr/bin/python3 -c "import urllib.request as u; print(u.urlopen(\"https://good.example/x\").read().decode())"'
	[git]='git clone -q https://github.com/demo/demo.git && cat demo/README'
	[npm]='npm install --no-audit --no-fund --registry https://registry.npmjs.org demo && node -p "require(\"demo\")"'
	[pip]='/usr/bin/python3 -m pip install -q --break-system-packages --target t demo && PYTHONPATH=t /usr/bin/python3 -c "import demo; print(demo.text)"'
	[go]='mkdir m && cd m && go mod init example.org/m && printf "package main\nimport \"example.org/demo\"\nfunc main() { println(demo.Text) }\n" >main.go && GONOSUMDB=example.org go get example.org/demo@v1.0.0 && go run .'
	[cargo]='CARGO_NAME=t cargo init -q --vcs none --name m m && cd m && printf "demo = \"1\"\n" >>Cargo.toml && printf "fn main() { println!(\"{}\", demo::TEXT); }\n" >src/main.rs && cargo run -q'
	[java]="$java https://good.example/x"
)
declare -A says=([git]='demo of git' [npm]='demo of npm' [pip]='demo of pip' [go]='demo of go' [cargo]='demo of cargo')

# reaches TOOL [SHELL BEFORE IT]
reaches() { like "$1 reaches what it may" "$(in_jail "${2:-}
${fetch[$1]}")" "${says[$1]:-hello from good}"; }
