import { createServer } from 'node:net';
import { SERVICE_NAMES } from '../../src/contracts/index.ts';

/** The part of a config by which each service takes any free port. */
export const FREE_PORTS = Object.fromEntries(SERVICE_NAMES.map((name) => [name, { port: 0 }]));

/** A TCP port that nobody had a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
