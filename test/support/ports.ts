import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { SERVICE_NAMES } from '../../src/contracts/index.ts';

/** The part of a config by which each service takes any free port. */
export const FREE_PORTS = Object.fromEntries(SERVICE_NAMES.map((name) => [name, { port: 0 }]));

/** Below the range from which Linux takes the ports of outgoing connections: such a port stays free between two starts. */
const FIRST_PORT = 12_000;
const PORTS = 20_000;

/** A TCP port on which nothing listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + randomInt(PORTS);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
