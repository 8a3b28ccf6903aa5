import { describeRetention } from '../suites/retention.ts';

describeRetention(200_000);
