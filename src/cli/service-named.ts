import { SERVICE_NAMES, ServiceName } from '../contracts/index.ts';
import { nearest } from '../kit/data/nearest.ts';
import { UsageError } from './parse-args.ts';

/** Parses a service name. Throws UsageError with a suggestion for an unknown name. */
export function serviceNamed(text: string): ServiceName {
  const service = ServiceName.safeParse(text);
  if (service.success) return service.data;
  const suggestion = nearest(text, SERVICE_NAMES);
  throw new UsageError(
    `Unknown service "${text}".${suggestion ? ` Did you mean ${suggestion}?` : ''} Services: ${SERVICE_NAMES.join(', ')}.`,
  );
}
