import { listEventTypes } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { EventTypes } from '../domain/event-types/event-types.ts';

/** Routes of the event types that plugins declare. @spec docs/emit.md */
export function eventTypeRoutes(http: Http, { eventTypes }: { eventTypes: EventTypes }): void {
  mount(http, listEventTypes, { auth: 'caller' }, async () => ({ items: await eventTypes.list() }));
}
