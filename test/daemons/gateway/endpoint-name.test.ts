import fc from 'fast-check';
import { expect, test } from 'vitest';
import { markerKey } from '../../../src/daemons/gateway/domain/webhooks/receive/delivery-id.ts';
import { endpointName } from '../../../src/daemons/gateway/domain/webhooks/receive/endpoint-name.ts';

/** Few values, so that neighbours differ in one part or in none. */
const part = fc.constantFrom('', 'a', 'b', '"', 'a","b');
const endpoint = fc.record({ namespaceId: part, pluginId: part, event: part, instanceId: part });

test('an endpoint always has its own name and its stored markers, whichever was requested before', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(endpoint, fc.string()), { minLength: 1 }), (asked) => {
      for (const [key, id] of asked) {
        const parts = [key.namespaceId, key.pluginId, key.event, key.instanceId];
        expect(endpointName(key)).toBe(JSON.stringify(parts));
        // Markers live for a week, over versions: their text must not change.
        expect(markerKey(key, id)).toBe(JSON.stringify([...parts, id]));
      }
    }),
  );
});
