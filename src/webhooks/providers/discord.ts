import type { Provider } from './provider.ts';

export const discord: Provider = {
  id: 'discord',
  name: 'Discord',
  sources: [
    'https://docs.discord.com/developers/interactions/receiving-and-responding',
    'https://docs.discord.com/developers/events/webhook-events',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'ed25519',
      signature: { header: 'x-signature-ed25519', prefix: '', encoding: 'hex', format: 'plain' },
      signed: '{timestamp}{body}',
      timestamp: { header: 'x-signature-timestamp', unit: 's', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
      key: 'raw-hex',
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the public key of General Information in the developer portal.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'event.type' },
  events: [
    'APPLICATION_AUTHORIZED',
    'APPLICATION_DEAUTHORIZED',
    'ENTITLEMENT_CREATE',
    'QUEST_USER_ENROLLMENT',
    'LOBBY_MESSAGE_CREATE',
    'LOBBY_MESSAGE_UPDATE',
    'LOBBY_MESSAGE_DELETE',
    'GAME_DIRECT_MESSAGE_CREATE',
    'GAME_DIRECT_MESSAGE_UPDATE',
    'GAME_DIRECT_MESSAGE_DELETE',
  ],
  handshakes: [
    // The ping of the interactions URL. Type 1 without a token is an event of the webhook events URL.
    {
      method: 'POST',
      when: [{ at: { field: 'type' }, equals: 1 }, { at: { field: 'token' } }],
      isAuthenticated: true,
      reply: { status: 200, headers: {}, json: { type: 1 } },
    },
    // The ping of the webhook events URL.
    {
      method: 'POST',
      when: [{ at: { field: 'type' }, equals: 0 }],
      isAuthenticated: true,
      reply: { status: 204, headers: {} },
    },
  ],
  // "Deferred response": Discord shows that the app is thinking, until the handler edits the message.
  accepted: { status: 200, contentType: 'application/json', body: '{"type":5}' },
  ackAfterMs: 2500,
  pitfalls: [
    'The secret is the public key of the application, not the token of the bot.',
    'Discord sends invalid signatures on purpose, and accepts the URL only if they get 401.',
    'Autocomplete, modals and webhook events need another answer than a deferred response: use reply "handler".',
    'Answer a deferred interaction within 15 minutes by its token.',
  ],
  sample: {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Discord-Interactions/1.0 (+https://discord.com)',
    },
    body: '{"type":2,"id":"786008729715212338","application_id":"775799577604522054","token":"A_UNIQUE_TOKEN","version":1,"data":{"id":"771825006014889984","name":"cardsearch","type":1}}',
  },
};
