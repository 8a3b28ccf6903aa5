import type { ServiceName } from '../contracts/index.ts';
import { messageOf, PlatformError } from '../kit/errors/errors.ts';
import { findPortOwner } from './port-owner.ts';

/** Adds details to the error of a failed start: the process that uses the port, or the last log lines. */
export function startFailure(thrown: unknown, name: ServiceName, lastLines: string[]): PlatformError {
  const error =
    thrown instanceof PlatformError
      ? thrown
      : new PlatformError('INTERNAL_ERROR', messageOf(thrown), { cause: thrown });
  const { port } = error.details as { port?: number };
  if (error.code === 'CONFLICT' && typeof port === 'number') return portTaken(name, port, error);
  if (error.code !== 'SERVICE_UNAVAILABLE' && error.code !== 'UPSTREAM_TIMEOUT') return error;
  return new PlatformError(error.code, error.message, {
    details: { ...error.details, service: name, lastLines },
    cause: error.cause,
  });
}

function portTaken(name: ServiceName, port: number, cause: PlatformError): PlatformError {
  const owner = findPortOwner(port);
  const by = owner ? `by pid ${owner.pid} (${owner.command.slice(0, 120)})` : 'by another process';
  return new PlatformError('CONFLICT', `Port ${port} of ${name} is in use ${by}.`, {
    details: {
      ...cause.details,
      service: name,
      owner,
      hint: `Stop that process, or choose another port, for example svc up --port ${name}=0 for any free one.`,
    },
    cause,
  });
}
