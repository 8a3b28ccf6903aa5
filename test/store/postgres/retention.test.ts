import { describeRetention } from '../suites/retention.ts';

describeRetention(50_000);
