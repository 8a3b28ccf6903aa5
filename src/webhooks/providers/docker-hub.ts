import type { Provider } from './provider.ts';

export const dockerHub: Provider = {
  id: 'docker-hub',
  name: 'Docker Hub',
  sources: ['https://docs.docker.com/docker-hub/repos/manage/webhooks/'],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { query: 'token' } }],
  secretFrom: 'url',
  secretHelp: 'Paste the URL with its token under Repository > Webhooks > Webhook URL.',
  protects: { body: false, url: false, time: false, sender: true },
  pitfalls: [
    'Docker Hub signs nothing and sends no event type or id: each delivery is a push of one tag.',
    'The field callback_url is no longer supported by Docker Hub. Do not call it.',
    'Everybody who can read the webhooks of the repository can read the token in the URL.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body:
      '{"callback_url":"https://registry.hub.docker.com/u/svendowideit/testhook/hook/2141b5bi5i5b02bec211i4eeih0242eg11000a/",' +
      '"push_data":{"pushed_at":1417566161,"pusher":"trustedbuilder","tag":"latest"},"repository":{"comment_count":0,' +
      '"date_created":1417494799,"description":"","is_official":false,"is_private":true,"is_trusted":true,"name":"testhook",' +
      '"namespace":"svendowideit","owner":"svendowideit","repo_name":"svendowideit/testhook",' +
      '"repo_url":"https://registry.hub.docker.com/u/svendowideit/testhook/","star_count":0,"status":"Active"}}',
  },
};
