import { readDotPath } from '../../../../kit/data/json.ts';
import type { JsonValue } from '../../../../kit/data/json-value.ts';
import type { NewDelivery } from '../../../../store/ports/index.ts';
import type { JsonPayload } from '../webhooks/receive/payload.ts';
import { requestOf } from '../webhooks/receive/request-head.ts';
import type { ExpressionScope } from './source-expressions.ts';
import type { StoredSource } from './source-records.ts';
import { catalogueEntry } from './source-targets.ts';

/** Returns the variables of filters and transforms. */
export function expressionScope(
  delivery: NewDelivery,
  payload: JsonPayload,
  { name, settings }: StoredSource,
): ExpressionScope {
  const { headers, query } = requestOf(delivery.headers);
  const body = (payload.value ?? null) as JsonValue;
  const place = catalogueEntry(settings.provider)?.eventType;
  const found =
    (place?.header === undefined ? undefined : headers[place.header.toLowerCase()]) ??
    (place?.query === undefined ? undefined : query[place.query]) ??
    (place?.field === undefined ? undefined : readDotPath(body, place.field));
  return { headers, body, source: name, event: typeof found === 'string' ? found : '' };
}
