use super::*;

fn check(text: &str, expect: &str) {
    let found = detect(text.as_bytes(), true);
    let place = match found.cut {
        Cut::Lines(_) => String::new(),
        Cut::Json(JsonPlace::Top) => " top".into(),
        Cut::Json(JsonPlace::Array(keys)) => format!(" [{}]", keys.join(".")),
    };
    let columns =
        if found.shape.columns.is_empty() { String::new() } else { format!(" {}", found.shape.columns.join(",")) };
    assert_eq!(format!("{:?}{place}{columns}", found.shape.format), expect, "{text}");
}

#[test]
fn json_in_its_forms() {
    check("{\"a\":1}\n{\"a\":2}\n", "Ndjson");
    check("{\"a\":1}\nnot json\n{\"a\":2}\n", "Ndjson");
    check("\u{feff}{\"a\":1}\n", "Ndjson");
    check("[{\"a\":1},\n{\"a\":2}]", "JsonArray []");
    check("[\n  {\n \"a\":1", "JsonArray []");
    check("{\"Records\":[{\"a\":1},{\"a\":2}]}", "JsonArray [Records]");
    check("{\"Records\":[{\"a\":1}]}\n{\"Records\":[{\"a\":2}]}\n", "JsonArray [Records]");
    check(
        "{\n \"@odata.context\": \"x\",\n \"value\": [\n {\"id\": \"aaaaaaaaaaaaaaaa\"},\n {\"id\": \"bbbbbbbbbbbbbbbbbbb\"}",
        "JsonArray [value]",
    );
    check(
        "{\"took\":1,\"hits\":{\"total\":2,\"hits\":[{\"_source\":{\"a\":1}},{\"_source\":{\"a\":1}}]}}",
        "JsonArray [hits.hits]",
    );
    check("{\n \"a\": 1\n}\n{\n \"a\": 2\n}\n", "JsonObjects top");
    check("{\"eventName\":\"x\",\"args\":[{\"p\":1}]}\n", "Ndjson");
}

#[test]
fn tables() {
    check("a,b\n1,2\n3,4\n", "Csv a,b");
    check("date,time,timezone,MACB\n01/02/2024,10:00:00,UTC,M...\n", "Csv date,time,timezone,MACB");
    check("Time Generated;Computer;Event ID\n1;2;3\n", "Csv Time Generated,Computer,Event ID");
    check("ts\tuid\n1\t2\n", "Tsv ts,uid");
    check("#separator \\x09\n#set_separator\t,\n#fields\tts\tuid\n#types\ttime\tstring\n1\t2\n", "ZeekTsv ts,uid");
    check("#Software: IIS\n#Fields: date time c-ip\n2024-01-01 10:00:00 1.2.3.4\n", "W3c date,time,c-ip");
    check(
        "0|/lost+found|11|d/drwx------|0|0|12288|1337961350|1337961350|1337961350|0\n",
        "Csv md5,name,inode,mode,uid,gid,size,atime,mtime,ctime,crtime",
    );
    check("hello, world\nthis is text, with a comma, or two\nand none\n", "Plain");
}

#[test]
fn lines() {
    check("Oct 10 13:55:36 web sshd[1]: x\n", "Syslog");
    check("<34>Oct 10 13:55:36 web sshd[1]: x\n", "Syslog");
    check("2024-01-01T10:00:00+00:00 web sshd[1]: x\n", "SyslogIso");
    check("<34>1 2024-01-01T10:00:00Z web sshd 1 - - x\n", "SyslogIso");
    check("type=SYSCALL msg=audit(1.5:2): arch=c000003e syscall=59\n", "Auditd");
    check("1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1\n", "AccessLog");
    check("CEF:0|V|P|1|1|n|3|src=1.2.3.4\n", "Cef");
    check("date=2024-01-01 time=10:00:00 srcip=1.2.3.4 action=deny\n", "KeyValue");
    check("time=\"2024-01-01T10:00:00Z\" level=info msg=\"x y\"\n", "KeyValue");
    check("2024-01-01 10:00:00 install foo:amd64 <none> 1.0\n", "Plain");
    check("2024-01-01 10:00:00 startup archives unpack\n", "Plain");
    check("<Event xmlns='x'><System><EventID>1</EventID></System></Event>\n", "XmlEvents");
    check("--0a1b2c3d-A--\n[07/Jun/2023:18:56:56 -0400] x 1.2.3.4 5 1.2.3.5 80\n--0a1b2c3d-Z--\n", "ModSecurity");
    check("<![LOG[Started]LOG]!><time=\"10:00:00.000+000\" date=\"01-02-2024\" component=\"x\">\n", "CmTrace");
    check("ls -la\ncat /etc/passwd\n", "Plain");
    check("[2024-01-01 10:00:00] x\n[2024-01-01 10:00:01] y\n", "Plain");
    check("apiVersion: v1\nkind: Policy\nspec:\n  - a: b\n", "Plain");
    check("", "Plain");
}
