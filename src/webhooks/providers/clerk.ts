import type { Provider } from './provider.ts';
import { standardScheme } from './standard-webhooks.ts';

export const clerk: Provider = {
  id: 'clerk',
  name: 'Clerk',
  sources: [
    'https://clerk.com/docs/guides/development/webhooks/overview',
    'https://docs.svix.com/receiving/verifying-payloads/how-manual',
  ],
  checkedOn: '2026-11-23',
  auth: [standardScheme('svix')],
  secretFrom: 'sender',
  secretHelp: 'Copy the Signing Secret of the endpoint in the Clerk Dashboard under Configure > Webhooks.',
  protects: { body: true, url: false, time: true, sender: true },
  deliveryId: { header: 'svix-id' },
  eventType: { field: 'type' },
  events: [
    'user.created',
    'user.updated',
    'user.deleted',
    'session.created',
    'session.ended',
    'session.removed',
    'session.revoked',
    'organization.created',
    'organization.updated',
    'organization.deleted',
    'organizationMembership.created',
    'organizationMembership.deleted',
    'organizationInvitation.created',
    'email.created',
    'sms.created',
  ],
  ackAfterMs: 12_000,
  pitfalls: [
    'Each endpoint has a secret of its own.',
    'Events arrive in no certain order, so user.updated can come before user.created.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"data":{"id":"user_29w83sxmDNGwOuEthce5gg56FcC","first_name":"Example","last_name":"Example","object":"user"},' +
      '"instance_id":"ins_123","object":"event","timestamp":1654012591835,"type":"user.created"}',
  },
};
