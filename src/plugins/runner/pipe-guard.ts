import { realpathSync } from 'node:fs';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import process from 'node:process';

type Connect = (this: object, request: unknown, address: unknown, ...rest: unknown[]) => unknown;
type Lock = (target: object, name: string, value: unknown) => void;

/** As libuv tells an error number to `node:net`, which makes an error of it. */
const REFUSED = -constants.errno.EACCES;
const ABSENT = -constants.errno.ENOENT;
/** Taken before plugin code can put another function in its place. */
const realPathOf = realpathSync.native;

/**
 * Holds sockets that are named by a path to `permissions.fs`: Node's permission model lets all of the network, and so the
 * container engine's socket, to whoever has any of it. On the native handle, which every client of the plugin ends at.
 */
export function guardPipes(channel: Socket, lock: Lock): void {
  const { permission } = process;
  const handle = (channel as unknown as { _handle?: object })._handle;
  if (!permission || handle?.constructor.name !== 'Pipe') return;
  const mayRead = permission.has.bind(permission, 'fs.read');
  const prototype = Object.getPrototypeOf(handle) as Record<string, unknown>;
  for (const name of ['connect', 'connect2']) {
    const connect = prototype[name] as Connect | undefined;
    if (!connect) continue;
    lock(prototype, name, function (this: object, request: unknown, address: unknown, ...rest: unknown[]) {
      // An abstract name begins with a NUL, and belongs to no folder.
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
