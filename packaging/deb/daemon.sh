# shellcheck shell=sh
# The daemon of this package among the processes.  Part of prerm and postinst.
# A container's agentboxd has the same path, and another root directory.
is_daemon() { # PID: a process of the installed agentboxd, also where its file has been replaced
	# shellcheck disable=SC3013 # not in POSIX, and in every sh there is
	case $(readlink "/proc/$1/exe" 2>/dev/null) in
	/usr/sbin/agentboxd | '/usr/sbin/agentboxd (deleted)') [ "/proc/$1/root" -ef / ] ;;
	*) false ;;
	esac
}

# Each daemon, without the children that are forks of it.
daemons() {
	for proc in /proc/[0-9]*; do
		pid=${proc#/proc/}
		is_daemon "$pid" || continue
		parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$proc/status" 2>/dev/null) || continue
		is_daemon "$parent" || echo "$pid"
	done
}
