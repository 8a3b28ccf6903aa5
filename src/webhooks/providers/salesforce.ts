import type { Provider } from './provider.ts';

/** Outbound messages of flows and workflow rules. */
export const salesforce: Provider = {
  id: 'salesforce',
  name: 'Salesforce',
  sources: [
    'https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging_notifications.htm',
    'https://www.salesforce.com/us/developer/docs/api/Content/sforce_api_om_outboundmessaging_wsdl.htm',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'token', at: { query: 'token' } }],
  secretFrom: 'url',
  secretHelp: 'Enter the URL with its token as the endpoint URL under Setup > Outbound Messages.',
  protects: { body: false, url: false, time: false, sender: true },
  body: 'xml',
  contentTypes: ['text/xml', 'application/xml', 'application/soap+xml'],
  deliveryId: { field: 'soapenv:Envelope.soapenv:Body.notifications.Notification.Id' },
  accepted: {
    status: 200,
    contentType: 'text/xml; charset=utf-8',
    body: '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><notificationsResponse xmlns="http://soap.sforce.com/2005/09/outbound"><Ack>true</Ack></notificationsResponse></soapenv:Body></soapenv:Envelope>',
  },
  pitfalls: [
    'Salesforce signs nothing: the token in the URL is the only proof of the sender.',
    'A message contains up to 100 notifications and may be sent more than once; compare the notification ids.',
    'Salesforce sends a message again for 24 hours unless the answer is a SOAP message with <Ack>true</Ack>.',
    'The addresses of orgs on Hyperforce are not fixed, so a list of addresses would refuse their messages.',
  ],
  sample: {
    headers: { 'content-type': 'text/xml; charset=utf-8', soapaction: '""' },
    body: '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><notifications xmlns="http://soap.sforce.com/2005/09/outbound"><OrganizationId>00D000000000001EAA</OrganizationId><ActionId>04k000000000001AAA</ActionId><SessionId xsi:nil="true"/><EnterpriseUrl>https://example.my.salesforce.com/services/Soap/c/60.0</EnterpriseUrl><PartnerUrl>https://example.my.salesforce.com/services/Soap/u/60.0</PartnerUrl><Notification><Id>04l000000000001AAA</Id><sObject xsi:type="sf:Opportunity" xmlns:sf="urn:sobject.enterprise.soap.sforce.com"><sf:Id>006000000000001AAA</sf:Id></sObject></Notification></notifications></soapenv:Body></soapenv:Envelope>',
  },
};
