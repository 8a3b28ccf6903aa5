import type { Provider } from './provider.ts';

export const microsoftGraph: Provider = {
  id: 'microsoft-graph',
  name: 'Microsoft Graph',
  sources: [
    'https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks',
    'https://learn.microsoft.com/en-us/graph/change-notifications-lifecycle-events',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { field: 'value.0.clientState' } }],
  secretFrom: 'platform',
  secretHelp: 'Give the secret as clientState when you create the subscription.',
  protects: { body: false, url: false, time: false, sender: true },
  eventType: { field: 'value.0.changeType' },
  events: ['created', 'updated', 'deleted'],
  handshakes: [
    {
      method: 'POST',
      when: [{ at: { query: 'validationToken' } }],
      isAuthenticated: false,
      reply: { status: 200, headers: {}, text: { from: { query: 'validationToken' } } },
    },
  ],
  ackAfterMs: 2500,
  pitfalls: [
    'Graph calls the URL with validationToken before the subscription exists, so the webhook must be deployed first.',
    'One delivery can contain notifications of several subscriptions. Give all of a URL the same clientState.',
    'Subscriptions expire after minutes to days, by resource. Renew them before.',
    'A notification without resource data names only what changed. Fetch the resource.',
    'With includeResourceData, the tokens in validationTokens must be checked by the handler.',
  ],
  sample: {
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body:
      '{"value":[{"id":"lsgTZMr9KwAAA","subscriptionId":"{subscription_guid}",' +
      '"subscriptionExpirationDateTime":"2016-03-19T22:11:09.952Z","clientState":"secretClientValue","changeType":"created",' +
      '"resource":"users/{user_guid}@{tenant_guid}/messages/{long_id_string}",' +
      '"tenantId":"84bd8158-6d4d-4958-8b9f-9d6445542f95","resourceData":{"@odata.type":"#Microsoft.Graph.Message",' +
      '"@odata.id":"Users/{user_guid}@{tenant_guid}/Messages/{long_id_string}","id":"{long_id_string}"}}]}',
  },
};
