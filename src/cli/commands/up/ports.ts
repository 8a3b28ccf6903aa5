import { SERVICE_NAMES, ServiceName } from '../../../contracts/index.ts';
import { parsePort } from '../../../kit/config/env.ts';
import { nearest } from '../../../kit/data/nearest.ts';
import { UsageError } from '../../parse-args.ts';

export type Ports = Partial<Record<ServiceName, number>>;

/** Parses the values of `--port`, such as `gateway=4100`. Throws UsageError for an invalid value. */
export function parsePortFlags(flags: readonly string[]): Ports {
  const ports: Ports = {};
  for (const flag of flags) {
    const [, name = '', text = ''] = /^([^=]*)=(.*)$/.exec(flag) ?? [];
    const service = ServiceName.safeParse(name);
    const port = parsePort(text);
    if (!service.success) throw unknownService(flag, name);
    if (port === null) throw new UsageError(`--port ${flag}: the port must be a number from 0 to 65535.`);
    ports[service.data] = port;
  }
  return ports;
}

function unknownService(flag: string, name: string): UsageError {
  const suggestion = nearest(name, SERVICE_NAMES);
  return new UsageError(
    `--port ${flag}: must be <service>=<port>, with one of ${SERVICE_NAMES.join(', ')}.${suggestion ? ` Did you mean ${suggestion}?` : ''}`,
  );
}
