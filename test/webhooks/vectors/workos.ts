import { createWorkOS } from '@workos-inc/node';
import { workos } from '../../../src/webhooks/providers/workos.ts';
import type { Vectors } from './vector.ts';

const SECRET = 'Zs1xB3nV9kQ4tR7y';

export const vectors: Vectors = async () => {
  const { headers, body } = workos.sample;
  // The library checks the age of a signature with its own clock.
  const at = Date.now();
  const { webhooks } = createWorkOS({ apiKey: 'sk_test', clientId: 'client_test' });
  const sigHeader = `t=${at}, v1=${await webhooks.computeSignature(at, body, SECRET)}`;
  await webhooks.constructEvent({ payload: body, sigHeader, secret: SECRET });
  return [
    {
      provider: 'workos',
      source: '@workos-inc/node@11.0.0 webhooks.computeSignature, accepted by its constructEvent',
      secret: SECRET,
      at,
      request: { headers: { ...headers, 'workos-signature': sigHeader }, body },
    },
  ];
};
