import { createServer } from 'node:http';
import type { AddressInfo, ListenOptions, Socket } from 'node:net';
import type { DaemonStart, FromDaemon, Listener, ToDaemon } from '../../../src/daemons/process-protocol.ts';
import { listeningHandle } from '../../../src/kit/process/node-internals.ts';

/** A service process for the supervisor: listens, hands its listener on, answers 200 to all requests, logs and drains. */
export function serveStandIn(name: string): void {
  const health = JSON.stringify({ status: 'ok', service: name, version: '0.0.0', uptimeMs: 1 });
  const server = createServer((_, response) => response.end(health));

  function tell(message: FromDaemon, handle?: Listener, sent = (): void => {}): void {
    // A listener is a native handle, which Node's types do not cover.
    if (process.connected) process.send?.(message, handle as Socket | undefined, undefined, sent);
    else sent();
  }

  function start({ listen: { host, port } }: DaemonStart, handle: Listener | undefined): void {
    server.once('error', ({ message }) => {
      const details = { service: name, host, port };
      tell({ type: 'failed', error: { code: 'CONFLICT', message, details } }, undefined, () =>
        process.exit(1),
      );
    });
    server.listen((handle ? { handle } : { host, port }) as ListenOptions, () => {
      const bound = (server.address() as AddressInfo).port;
      const record = { level: 'info', time: Date.now(), serviceId: name, message: `${name} listens` };
      process.stdout.write(`${JSON.stringify(record)}\n`);
      const url = `http://${host}:${bound}`;
      tell({ type: 'listening', url, ownUrl: url, port: bound }, listeningHandle(server));
    });
  }

  function stop(): void {
    server.close(() => process.exit(0));
    server.closeAllConnections();
  }

  process.title = `svc ${name}`;
  process.on('message', (message: ToDaemon, handle: unknown) => {
    if (message.type === 'start') start(message.start, handle as Listener | undefined);
    else if (message.type === 'stop') stop();
  });
  process.on('disconnect', stop);
}
