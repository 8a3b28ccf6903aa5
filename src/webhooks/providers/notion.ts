import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const notion: Provider = {
  id: 'notion',
  name: 'Notion',
  sources: [
    'https://developers.notion.com/reference/webhooks',
    'https://developers.notion.com/reference/webhooks-events-delivery',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-notion-signature', prefix: 'sha256=' })],
  secretFrom: 'sender',
  secretHelp:
    'Notion sends the verification token when the subscription is created: open the window for it first, then paste the token into Notion to confirm.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'type' },
  events: [
    'page.created',
    'page.content_updated',
    'page.properties_updated',
    'page.moved',
    'page.deleted',
    'page.undeleted',
    'page.locked',
    'page.unlocked',
    'database.created',
    'database.moved',
    'database.deleted',
    'database.undeleted',
    'data_source.created',
    'data_source.content_updated',
    'data_source.schema_updated',
    'data_source.moved',
    'data_source.deleted',
    'data_source.undeleted',
    'comment.created',
    'comment.updated',
    'comment.deleted',
  ],
  handshakes: [
    {
      method: 'POST',
      when: [{ at: { field: 'verification_token' } }],
      isAuthenticated: false,
      effect: { type: 'take-secret', at: { field: 'verification_token' } },
      reply: { status: 200, headers: {} },
    },
  ],
  pitfalls: [
    'The subscription stays inactive until its verification token is pasted into the settings of the integration.',
    'An event has only the ids of what changed; read the content with the API.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"id":"367cba44-b6f3-4c92-81e7-6a2e9659efd4","timestamp":"2024-12-05T23:55:34.285Z","workspace_id":"13950b26-c203-4f3b-b97d-93ec06319565","subscription_id":"29d75c0d-5546-4414-8459-7b7a92f1fc4b","integration_id":"0ef2e755-4912-8096-91c1-00376a88a5ca","type":"page.created","authors":[{"id":"c7c11cca-1d73-471d-9b6e-bdef51470190","type":"person"}],"attempt_number":1,"entity":{"id":"153104cd-477e-809d-8dc4-ff2d96ae3090","type":"page"},"data":{"parent":{"id":"13950b26-c203-4f3b-b97d-93ec06319565","type":"space"}}}',
  },
};
