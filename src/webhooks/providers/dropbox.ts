import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const dropbox: Provider = {
  id: 'dropbox',
  name: 'Dropbox',
  sources: ['https://www.dropbox.com/developers/reference/webhooks'],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'x-dropbox-signature' })],
  secretFrom: 'sender',
  secretHelp: 'Copy the app secret of Settings in the Dropbox App Console.',
  protects: { body: true, url: false, time: false, sender: true },
  handshakes: [
    {
      method: 'GET',
      when: [{ at: { query: 'challenge' } }],
      isAuthenticated: false,
      reply: {
        status: 200,
        headers: { 'x-content-type-options': 'nosniff' },
        text: { from: { query: 'challenge' } },
      },
    },
  ],
  ackAfterMs: 9000,
  pitfalls: [
    'A notification names accounts only. Ask /files/list_folder/continue for the changes.',
    'Dropbox disables the webhook if most deliveries fail.',
    'Deliveries have no id, and two deliveries for one account can be equal.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'user-agent': 'DropboxWebhooks/1.0' },
    body: '{"list_folder":{"accounts":["dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc"]},"delta":{"users":[12345678]}}',
  },
};
