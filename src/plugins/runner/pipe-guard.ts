import { realpathSync } from 'node:fs';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import process from 'node:process';
import { PIPE_CONNECT_METHODS, pipePrototype } from '../../kit/process/node-internals.ts';

type Connect = (this: object, request: unknown, address: unknown, ...rest: unknown[]) => unknown;
type Lock = (target: object, name: string, value: unknown) => void;

/** Negated error numbers, in the form that libuv returns. `node:net` converts these numbers to errors. */
const REFUSED = -constants.errno.EACCES;
const ABSENT = -constants.errno.ENOENT;
/** Saved before plugin code runs, because plugin code could replace the function. */
const realPathOf = realpathSync.native;

/**
 * Restricts Unix sockets to the folders in `permissions.fs`, because Node's network permission allows all Unix sockets.
 * Patches the native handle, because every client uses that handle.
 */
export function guardPipes(channel: Socket, lock: Lock): void {
  const { permission } = process;
  const prototype = pipePrototype(channel);
  if (!permission || !prototype) return;
  const mayRead = permission.has.bind(permission, 'fs.read');
  for (const name of PIPE_CONNECT_METHODS) {
    const connect = prototype[name] as Connect | undefined;
    if (!connect) continue;
    lock(prototype, name, function (this: object, request: unknown, address: unknown, ...rest: unknown[]) {
      // Refuses abstract socket names, which start with NUL and are not in any folder.
      if (typeof address !== 'string' || address.includes('\0')) return REFUSED;
      let real: string;
      try {
        real = realPathOf(address);
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'ENOENT' ? ABSENT : REFUSED;
      }
      return mayRead(real) ? connect.call(this, request, real, ...rest) : REFUSED;
    });
  }
}
