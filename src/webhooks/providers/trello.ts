import type { Provider } from './provider.ts';

export const trello: Provider = {
  id: 'trello',
  name: 'Trello',
  sources: ['https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/'],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha1',
      signature: { header: 'x-trello-webhook', prefix: '', encoding: 'base64', format: 'plain' },
      signed: '{body}{url}',
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the secret of the Power-Up from https://trello.com/power-ups/admin under API key.',
  protects: { body: true, url: true, time: false, sender: true },
  deliveryId: { field: 'action.id' },
  eventType: { field: 'action.type' },
  events: [
    'createCard',
    'updateCard',
    'deleteCard',
    'commentCard',
    'addMemberToCard',
    'addAttachmentToCard',
    'updateCheckItemStateOnCard',
    'createList',
    'updateList',
    'updateBoard',
    'voteOnCard',
  ],
  handshakes: [{ method: 'HEAD', when: [], isAuthenticated: false, reply: { status: 200, headers: {} } }],
  accepted: { status: 200, body: '' },
  pitfalls: [
    'Trello signs the callback URL as registered, so gateway.publicUrl must be the start of that URL.',
    'The key of the signature is the secret of the Power-Up, not a token of a user.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"action":{"id":"51f9424bcd6e040f3c002412","idMemberCreator":"4fc78a59a885233f4b349bd9","data":{"board":{"name":"Trello Development","id":"4d5ea62fd76aa1136000000c"},"card":{"idShort":1458,"name":"Webhooks","id":"51a79e72dbb7e23c7c003778"},"voted":true},"type":"voteOnCard","date":"2013-07-31T16:59:55.571Z"},"model":{"id":"4d5ea62fd76aa1136000000c","name":"Trello Development"}}',
  },
};
