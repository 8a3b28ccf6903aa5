import { createServer } from 'node:net';
import { SERVICE_NAMES, type ServiceName } from '../../../contracts/index.ts';
import { codeOf } from '../../../kit/errors/errors.ts';
import { findPortOwner } from '../../../supervisor/port-owner.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

/** Checks that each configured port is free or already used by its own service. */
export async function checkPorts({ loaded, running }: CheckTarget): Promise<Fact[]> {
  const held = new Map(running?.services.map(({ name, port }) => [name, port]));
  const names = running?.services.map(({ name }) => name) ?? SERVICE_NAMES;
  const facts = await Promise.all(
    names.map(async (name): Promise<Fact | null> => {
      const { host, port } = loaded.config[name];
      if (port === 0 || held.get(name) === port) return null;
      const refused = await tryListen(host, port);
      return refused ? describe(name, host, port, refused) : null;
    }),
  );
  const bad = facts.filter((fact) => fact !== null);
  if (bad.length > 0) return bad;
  const ports = names.map((name) => `${name} ${held.get(name) ?? (loaded.config[name].port || 'any')}`);
  return [fine(running ? `held by this platform: ${ports.join(', ')}` : `free: ${ports.join(', ')}`)];
}

function describe(name: ServiceName, host: string, port: number, code: string): Fact {
  const other = `Use svc up --port ${name}=0 for any free port, or set ${name}.port.`;
  if (code === 'EADDRINUSE') {
    const owner = findPortOwner(port);
    const by = owner ? `pid ${owner.pid} (${owner.command.slice(0, 120)})` : 'another process';
    return failure(`Port ${port} of ${name} is in use by ${by}.`, `Stop that process. ${other}`);
  }
  if (code === 'EACCES')
    return failure(`Port ${port} of ${name} is privileged.`, `Use a port above 1023. ${other}`);
  return failure(
    `${name} cannot listen on ${host}:${port} (${code}).`,
    `Set ${name}.host to an address of this machine.`,
  );
}

/** Tries to listen on an address. Returns the error code, or null if the address is free. */
function tryListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error) => resolve(codeOf(error) ?? 'UNKNOWN'));
    probe.listen({ host, port }, () => probe.close(() => resolve(null)));
  });
}
