import { SERVICE_NAMES, type ServiceName } from '../../../contracts/index.ts';
import { UsageError } from '../../parse-args.ts';
import { serviceNamed } from '../../service-named.ts';

/** Parses the value of `--services`, such as `gateway,rest`. Throws UsageError for an unknown name or an empty list. */
export function parseServices(list: string): ServiceName[] {
  const names = list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0)
    throw new UsageError(`--services is empty. Name one or more of ${SERVICE_NAMES.join(', ')}.`);
  const wanted = new Set(names.map(serviceNamed));
  return SERVICE_NAMES.filter((name) => wanted.has(name));
}

/** Options that a start passes on to the supervisor. */
export interface StartSelection {
  /** Ports from `--port`. */
  ports: Partial<Record<ServiceName, number>>;
  /** Services from `--services`, or undefined for all services. */
  services: readonly ServiceName[] | undefined;
}
