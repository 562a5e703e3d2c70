//! The field names of many products for each facet.

use std::sync::OnceLock;

use super::{Facet, last};

/// For each facet the field names, best first. A name is the last part of a path or the last two parts, in lower
/// case, with only letters, digits and the dot.
pub(super) fn all() -> &'static [(Facet, Vec<&'static str>)] {
    static ALL: OnceLock<Vec<(Facet, Vec<&'static str>)>> = OnceLock::new();
    ALL.get_or_init(|| NAMES.iter().map(|(facet, names)| (*facet, names.split_whitespace().collect())).collect())
}

pub(crate) fn of(wanted: Facet) -> &'static [&'static str] {
    all().iter().find(|(facet, _)| *facet == wanted).map_or(&[], |(_, names)| names)
}

/// The facet of a field, by the last `parts` parts of its path.
pub fn facet_of(path: &str, parts: usize) -> Option<Facet> {
    let name = last(path, parts);
    all().iter().find(|(_, names)| names.contains(&name.as_str())).map(|(facet, _)| *facet)
}

const NAMES: &[(Facet, &str)] = &[
    (
        Facet::Parent,
        "parentimage parent.binary parentexe parentprocessname parent.executable parent.exe parentprocess \
        parentpath parentname creatorprocessname proc.pname process.parentname parentbasefilename \
        parentimagefilename parent.processpath createdprocessparentname pproc",
    ),
    (
        Facet::ParentCommand,
        "parentcommandline parentcmdline parentcommand parent.commandline parent.arguments parent.cmdline \
        parentprocesscommandline parent.processcmdline proc.pcmdline parentargs pcmdline",
    ),
    (
        Facet::Process,
        "image newprocessname createdprocessname targetprocessname tgtprocimagepath tgtprocname childprocname \
        process.binary process.executable process.exe exe processpath sourceimage executable binary \
        processname process.name proc.exepath proc.name imagefilename processimagepath filename comm program",
    ),
    (
        Facet::Command,
        "commandline createdprocesscommandline targetprocesscommandline tgtproccmdline childproccmdline \
        cmdline process.commandline processcommandline scriptblocktext hostapplication command cmd proctitle \
        process.arguments arguments processcmdline proc.cmdline message.args querytext",
    ),
    (
        Facet::User,
        "useridentity.arn userprincipalname detectionuser userid.name actor.alternateid targetusername user username \
        useridentity.username userid accountname actor principal principalemail account client \
        subjectusername eventxml.param1 userdata.param1 login email mailboxownerupn user.name suser duser \
        createdprocessaccountname processusername actorusername initiatingprocessaccountname caller identity \
        userdisplayname actor.email srcuser sourceuser sourceusername destinationusername usrname csusername \
        cusername loginname dbuser acct serverprincipalname",
    ),
    (
        Facet::Host,
        "host.name computer computername hostname devicename nodename node host dvchost agent.name system \
        node.name computerdnsname dvchostname devicehostname machinename hostidentifier agentcomputername \
        dvc shost",
    ),
    (
        Facet::SrcIp,
        "sourceipaddress sourceip srcip id.origh idorigh source.ip src clientip callerip callipaddress \
        ipaddress clientipaddress remoteaddr cip client.ipaddress sourceaddress remoteip \
        sourcenetworkaddress clientaddress eventxml.address eventxml.param3 userdata.address userdata.param3 \
        ip srcipaddr actorip calleripaddress sourceips actoripaddress srcaddr remoteaddress \
        remoteipaddressv4 clientipaddr realclientip addr",
    ),
    (
        Facet::DstIp,
        "destinationip destip dstip id.resph idresph destination.ip dst destinationaddress sip serverip \
        dstipaddr dstaddr remoteip4 destinationipaddress",
    ),
    (
        Facet::DstPort,
        "destinationport destport dstport dport id.respp idrespp destination.port sport dpt dstportnumber \
        remoteport",
    ),
    (
        Facet::DomainName,
        "queryname query servername sni rrname dns.question.name question.name qname domain \
        destinationhostname dnsquery dnsquestion destinationdomain destination.domain dhost remoteurl \
        dstfqdn dstdomain",
    ),
    (
        Facet::Url,
        "url uri requesturi requesturl csuristem http.url request uripath url.original url.full \
        requestclientapplicationurl csuri fullurl",
    ),
    (Facet::Body, "requestbody postdata postbody httprequestbody request.body.content"),
    (Facet::HttpMethod, "httpmethod method csmethod verb requestmethod httprequestmethod"),
    (
        Facet::HttpStatus,
        "statuscode httpstatus scstatus responsestatus.code http.status status elbstatuscode httpstatuscode \
        response.statuscode responsecode",
    ),
    (
        Facet::UserAgent,
        "useragent client.useragent.rawuseragent useragent.rawuseragent csuseragent httpuseragent agent \
        callersupplieduseragent requestclientapplication useragentoriginal",
    ),
    (
        Facet::Object,
        "targetfilename targetobject targetimage imageloaded requestparameters.key \
        requestparameters.bucketname requestparameters.rolename requestparameters.username \
        requestparameters.secretid modulearg.name filearg.path objectname objectref.name relativetargetname \
        repo objectid target resource package taskname path name file stringarg resourcename \
        target.alternateid target.displayname targetfilepath tgtfilepath filepath registrykey \
        registryvaluename securitypackagename objectkey fd.name searchfilter pipename fname unit objectdn",
    ),
    (
        Facet::Service,
        "eventsource servicename service workload programname appdisplayname provider providername \
        application app logger",
    ),
    (
        Facet::Action,
        "alert.signature alertname eventname operationname operation actiontype functionname action activitydisplayname \
        events.name eventid eventtype event activity syscall named.pipe requesttype note signature methodname type \
        operationnamevalue eventsimplename act deviceaction eventaction displaymessage \
        operationtype verb rule eventcategory operationname.value",
    ),
    (
        Facet::Outcome,
        "outcome outcome.result result resulttype responseelements.consolelogin success authsuccess errorcode \
        status resultstatus eventresult activitystatusvalue activitystatus logonresult res status.value issuccess executionstatus",
    ),
    (Facet::PrincipalType, "useridentity.type actor.type usertype actortype"),
    (Facet::Severity, "alertseverity alertseveritylevel severity"),
    (Facet::Direction, "direction initiated"),
    (Facet::BytesOut, "origbytes bytessent bytesout sentbytes bytestoserver outbytes"),
    (Facet::BytesIn, "respbytes bytesreceived bytesin rcvdbytes bytestoclient responsebodylen"),
];
