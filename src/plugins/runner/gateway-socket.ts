import { Socket } from 'node:net';
import process from 'node:process';

type Connect = (this: Socket, ...args: unknown[]) => Socket;

/**
 * Redirects connections for the gateway's address to a Unix socket, because a container cannot reach the host's
 * loopback interface. Patches `Socket.connect`, so that every HTTP client works.
 */
export function routeGatewayToSocket(env: NodeJS.ProcessEnv = process.env): void {
  const { SVC_GATEWAY_SOCKET: path, SVC_GATEWAY_URL: url } = env;
  if (path === undefined || url === undefined) return;
  const { hostname } = new URL(url);
  const prototype = Socket.prototype as unknown as { connect: Connect };
  const { connect } = prototype;
  prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    // `net.connect` passes its arguments to `Socket.connect` as one array.
    const [given, ...rest] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
    const isGateway = (given as { host?: unknown } | null)?.host === hostname;
    if (!isGateway) return connect.apply(this, args);
    const listener = [...rest, ...args].find((value) => typeof value === 'function');
    return connect.call(this, { path }, ...(listener ? [listener] : []));
  };
}
