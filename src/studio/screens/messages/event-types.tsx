import type { DeclaredEventType } from '../../../contracts/event-types.ts';
import { useQuery } from '../../api/query.ts';
import { IS_PORTAL } from '../../app/portal-address.ts';

/** Returns the event types that plugins declare. A portal does not show them. */
export function useEventTypes(): readonly DeclaredEventType[] {
  return useQuery('listEventTypes', {}, { enabled: !IS_PORTAL }).data?.items ?? [];
}

/** Suggestions for fields that take event types. */
export function EventTypeNames({ id }: { id: string }) {
  return (
    <datalist id={id}>
      {useEventTypes().map(({ type, description }) => (
        <option key={type} value={type}>
          {description}
        </option>
      ))}
    </datalist>
  );
}
