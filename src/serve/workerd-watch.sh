#!/bin/sh
# Runs workerd (its path is in LONGLINE_WORKERD) so that it never outlives the relay's process: whatever ends that
# process, even SIGKILL, workerd is ended within a second. Otherwise it would keep the port and the database open.
relay=$PPID
runtime=$$

(
  while kill -0 "$runtime"; do
    if ! kill -0 "$relay"; then
      kill -9 "$runtime"
      exit
    fi
    sleep 1
  done
) </dev/null >/dev/null 2>&1 3>&- &

# Ctrl-C reaches the whole process group; the relay decides when the runtime ends. Ignored signals stay ignored.
trap '' INT HUP
# exec keeps stdin (the configuration) and descriptor 3 (the control pipe) intact.
exec "$LONGLINE_WORKERD" "$@"
