import type { Provider } from './provider.ts';

export const azureEventgrid: Provider = {
  id: 'azure-eventgrid',
  name: 'Azure Event Grid',
  sources: [
    'https://learn.microsoft.com/en-us/azure/event-grid/end-point-validation-event-grid-events-schema',
    'https://learn.microsoft.com/en-us/azure/event-grid/end-point-validation-cloud-events-schema',
    'https://learn.microsoft.com/en-us/azure/event-grid/security-authentication',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { query: 'token' } }],
  secretFrom: 'url',
  secretHelp: 'Paste the URL with its token as the endpoint of the event subscription.',
  protects: { body: false, url: false, time: false, sender: true },
  deliveryId: { field: '0.id' },
  eventType: { field: '0.eventType' },
  events: [
    'Microsoft.Storage.BlobCreated',
    'Microsoft.Storage.BlobDeleted',
    'Microsoft.Resources.ResourceWriteSuccess',
    'Microsoft.Resources.ResourceDeleteSuccess',
    'Microsoft.KeyVault.SecretNewVersionCreated',
    'Microsoft.ContainerRegistry.ImagePushed',
    'Microsoft.Devices.DeviceConnected',
    'Microsoft.EventGrid.SubscriptionValidationEvent',
  ],
  handshakes: [
    {
      method: 'POST',
      when: [{ at: { header: 'aeg-event-type' }, equals: 'SubscriptionValidation' }],
      isAuthenticated: true,
      reply: {
        status: 200,
        headers: {},
        json: { validationResponse: { from: { field: '0.data.validationCode' } } },
      },
    },
    {
      method: 'OPTIONS',
      when: [{ at: { header: 'webhook-request-origin' } }],
      isAuthenticated: true,
      reply: {
        status: 200,
        headers: {
          allow: 'POST',
          'webhook-allowed-origin': { from: { header: 'webhook-request-origin' } },
        },
      },
    },
  ],
  ackAfterMs: 25_000,
  sendsHeaders: true,
  pitfalls: [
    'Keep "Max events per batch" at 1: the delivery id is that of the first event of a request.',
    'Choose the Event Grid schema, or use the provider cloudevents for the CloudEvents schema.',
    'With Microsoft Entra ID, declare auth.type "jwt" with the issuer of the tenant and the claim azp (appid in version 1 ' +
      'tokens) of Event Grid, 4962773b-9cdb-44cf-a8bf-237846a00ab7, instead of this provider.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'aeg-event-type': 'Notification' },
    body:
      '[{"topic":"/subscriptions/{subscription-id}/resourceGroups/Storage/providers/Microsoft.Storage/storageAccounts/' +
      'my-storage-account","subject":"/blobServices/default/containers/test-container/blobs/new-file.txt",' +
      '"eventType":"Microsoft.Storage.BlobCreated","eventTime":"2017-06-26T18:41:00.9584103Z",' +
      '"id":"831e1650-001e-001b-66ab-eeb76e069631","data":{"api":"PutBlockList","contentType":"text/plain",' +
      '"contentLength":524288,"blobType":"BlockBlob"},"dataVersion":"","metadataVersion":"1"}]',
  },
};
