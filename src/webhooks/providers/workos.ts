import type { Provider } from './provider.ts';

export const workos: Provider = {
  id: 'workos',
  name: 'WorkOS',
  sources: [
    'https://workos.com/docs/events/data-syncing/webhooks',
    'https://github.com/workos/workos-node/blob/main/src/common/crypto/signature-provider.ts',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: {
        header: 'workos-signature',
        prefix: '',
        encoding: 'hex',
        format: { separator: ',', assign: '=', key: 'v1' },
      },
      signed: '{timestamp}.{body}',
      timestamp: { param: 't', unit: 'ms', toleranceSeconds: 180 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the signing secret of the endpoint in the WorkOS Dashboard under Webhooks.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { field: 'id' },
  eventType: { field: 'event' },
  events: [
    'connection.activated',
    'connection.deactivated',
    'connection.deleted',
    'dsync.activated',
    'dsync.deleted',
    'dsync.group.created',
    'dsync.group.user_added',
    'dsync.group.user_removed',
    'dsync.user.created',
    'dsync.user.updated',
    'dsync.user.deleted',
    'organization.created',
    'organization_membership.created',
    'session.created',
    'user.created',
    'user.updated',
    'user.deleted',
  ],
  pitfalls: [
    'Events arrive in no certain order.',
    'WorkOS waits for one answer per event. Answer first and process afterwards.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"id":"wh_123","data":{"id":"directory_user_01FAEAJCR3ZBZ30D8BD1924TVG","object":"directory_user","state":"active",' +
      '"first_name":"Blair","last_name":"Lunchford","directory_id":"directory_01F9M7F68PZP8QXP8G7X5QRHS7"},' +
      '"event":"dsync.user.created","created_at":"2021-06-25T19:07:33.155Z"}',
  },
};
