import type { Provider } from './provider.ts';

export const cloudevents: Provider = {
  id: 'cloudevents',
  name: 'CloudEvents',
  sources: [
    'https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md',
    'https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/http-protocol-binding.md',
  ],
  checkedOn: '2026-11-23',
  auth: [
    { type: 'token', at: { header: 'authorization' }, prefix: 'Bearer ' },
    { type: 'token', at: { query: 'access_token' } },
  ],
  secretFrom: 'platform',
  secretHelp:
    'Give the secret to the sender as its bearer token, or append it to the URL as the parameter access_token.',
  protects: { body: false, url: false, time: false, sender: true },
  body: 'json',
  contentTypes: ['application/cloudevents+json', 'application/cloudevents-batch+json', 'application/json'],
  eventType: { field: 'type' },
  handshakes: [
    {
      method: 'OPTIONS',
      when: [{ at: { header: 'webhook-request-origin' } }],
      isAuthenticated: false,
      reply: {
        status: 200,
        headers: {
          allow: 'POST',
          'webhook-allowed-origin': { from: { header: 'webhook-request-origin' } },
        },
      },
    },
  ],
  pitfalls: [
    'The id of an event is unique only together with its source. Declare idempotencyKey "id" only if the webhook has one source.',
    'For data other than JSON in binary mode, declare body "raw" and the content types.',
  ],
  sample: {
    headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
    body:
      '{"specversion":"1.0","type":"com.example.someevent","source":"/mycontext/subcontext","id":"1234-1234-1234",' +
      '"time":"2018-04-05T17:31:00Z","datacontenttype":"application/json","data":{"appinfoA":"abc","appinfoB":123}}',
  },
};
